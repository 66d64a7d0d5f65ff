#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one tiny addition takes in PyTorch's eager mode, result given, on one thread.

usage: torch_single.py [ELEMENTS]     prints version and median; exit code 77 and why where there is no PyTorch
"""
import statistics
import sys
import time

ROUNDS = 101
TIMES = 1000


def main():
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed (Debian: python3-torch)")
        return 77
    torch.set_num_threads(1)
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    x, y = torch.ones(elements), torch.empty(elements)
    rounds = []
    with torch.no_grad():
        for _ in range(ROUNDS):
            begin = time.perf_counter_ns()
            for _ in range(TIMES):
                torch.add(x, x, out=y)
            rounds.append((time.perf_counter_ns() - begin) / TIMES)
    print(f"PyTorch {torch.__version__} eager, one addition of {elements} f32: {statistics.median(rounds):.1f} ns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
