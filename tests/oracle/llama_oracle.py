# SPDX-License-Identifier: Apache-2.0
"""llama_oracle.py PROGRAM MODEL STEPS [OPTION...]: what examples/llama computes is what float64 numpy computes.

The logits of every step, the prompt's last token included, differ by at most 1e-4 of the largest; and the token is the one
that numpy finds wherever the two best are further apart than that.  200 steps after the first ask no device anything, prepare
nothing and plan nothing.  Exit 77: skipped.
"""
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
TOLERANCE = 1e-4
PROMPT = (1, 403, 407, 261, 378)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


try:
    import numpy
except ImportError:
    skip("numpy is missing: scripts/make-venv")
import llama_numpy


def run(program, model, steps, options):
    with tempfile.TemporaryDirectory() as folder:
        logits = os.path.join(folder, "logits")
        command = [program, model, "--steps", str(steps), "--prompt", ",".join(map(str, PROMPT)), "--logits", logits, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return [int(word) for word in done.stdout.split()], numpy.fromfile(logits, "<f4"), done.stderr


def main():
    program, path, steps, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    if not os.path.exists(path):
        skip(f"there is no {path}")
    tokens, logits, said = run(program, path, steps, options)
    model = llama_numpy.Model(path)
    logits = logits.reshape(-1, model.vocabulary)
    assert len(tokens) == steps and len(logits) == steps, (len(tokens), logits.shape)

    for token in PROMPT[:-1]:
        model.step(token)
    worst, margin, taken, previous = 0, float("inf"), 0, PROMPT[-1]
    for step, token in enumerate(tokens):
        expected = model.step(previous)
        largest = abs(expected).max()
        worst = max(worst, abs(logits[step] - expected).max() / largest)
        second, first = numpy.sort(expected)[-2:]
        if first - second > 2 * TOLERANCE * largest:
            taken += 1
            assert token == expected.argmax(), f"step {step}: token {token}, expected {expected.argmax()}"
        margin = min(margin, (first - second) / largest)
        previous = token
    print(f"{steps} steps: largest difference {worst:.2e} of the largest logit, smallest margin {margin:.2e}, {taken} tokens compared")
    print(said.strip())
    assert worst <= TOLERANCE
    later = re.search(r"after the first step: (\d+) questions, (\d+) kernels prepared, (\d+) plans", said)
    assert later and later.groups() == ("0", "0", "0"), said


main()
