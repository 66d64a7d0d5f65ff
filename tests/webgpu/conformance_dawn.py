# SPDX-License-Identifier: Apache-2.0
"""The conformance run on the Dawn inside a Python package, which has no symbols to find: its functions are handed in.

    conformance_dawn.py MODULE [OPTION...]
"""
import ctypes
import sys

import dawn


def main():
    address = dawn.proc_address()
    module = ctypes.CDLL(sys.argv[1])
    words = [b"tensormorph-conformance", b"webgpu", b"--set", b"proc_address=%#x" % address]
    words += [word.encode() for word in sys.argv[2:]]
    return module.conformance_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))


if __name__ == "__main__":
    sys.exit(main())
