# SPDX-License-Identifier: Apache-2.0
"""Where the wgpudawn package has its wgpuGetProcAddress."""
import sys


def proc_address():
    try:
        from wgpudawn._lib import _wgpu_dawn
    except ImportError as error:
        print(f"skipped: this Python has no wgpudawn ({error})")
        sys.exit(77)
    return int(_wgpu_dawn.ffi.cast("uintptr_t", _wgpu_dawn.ffi.addressof(_wgpu_dawn.lib, "wgpuGetProcAddress")))
