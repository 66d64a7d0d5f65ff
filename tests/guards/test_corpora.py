# SPDX-License-Identifier: Apache-2.0
"""The seed corpora are what fuzz/make_corpus.py writes, and it leaves alone those that it does not."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

FUZZ = pathlib.Path(__file__).resolve().parent.parent.parent / "fuzz"
OF_OTHERS = {"sim_description"}


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Corpora(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.corpus = self.root / "corpus"
        self.script = shutil.copyfile(FUZZ / "make_corpus.py", self.root / "make_corpus.py")

    def make(self):
        subprocess.run([sys.executable, "-B", self.script], check=True)

    def test_what_is_committed_is_what_is_made(self):
        self.make()
        committed = {name: data for name, data in content(FUZZ / "corpus").items() if name.split("/")[0] not in OF_OTHERS}
        made = content(self.corpus)
        self.assertGreater(len(made), 100)
        self.assertEqual(sorted(made), sorted(committed))
        self.assertEqual([name for name in made if made[name] != committed[name]], [])

    def test_corpora_of_others_stay(self):
        for name in ("sim_description/seed", "sim_description/deep/seed", "another/seed", "README"):
            (self.corpus / name).parent.mkdir(parents=True, exist_ok=True)
            (self.corpus / name).write_bytes(name.encode())
        before = content(self.corpus)
        (self.corpus / "gguf").mkdir()
        (self.corpus / "gguf" / "no longer made").write_bytes(b"old")
        self.make()
        after = content(self.corpus)
        self.assertEqual({name: after.get(name) for name in before}, before)
        self.assertNotIn("gguf/no longer made", after)


if __name__ == "__main__":
    unittest.main()
