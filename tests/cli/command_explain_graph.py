# SPDX-License-Identifier: Apache-2.0
"""explain --graph: the placement of a saved graph as text and JSON; its numbers add up, and what it says would be is so."""

import json
import re

import harness
from zoo import ZOO

TWO_QUEUES = ("--plugin", ZOO / "two_queues.so")


class Graph:
    """Items of a graph's file, numbered as they come."""

    def __init__(self):
        self.items, self.count = [], 0

    def value(self, kind, name, dims, dtype="f32"):
        self.items.append({"kind": kind, "value": self.count, "name": name, "format": dtype, "dims": dims})
        self.count += 1
        return self.count - 1

    def node(self, op, inputs, dims, name="", attributes=""):
        item = {"kind": "node", "values": [self.count], "op": op, "version": 1, "inputs": inputs}
        item |= {"results": [{"format": "f32", "dims": dims}]}
        item |= {"name": name} if name else {}
        item |= {"attributes": attributes} if attributes else {}
        self.items.append(item)
        self.count += 1
        return self.count - 1

    def output(self, value, name="y"):
        self.items.append({"kind": "output", "value": value, "name": name})

    def text(self):
        return json.dumps({"tensormorph_graph": 1, "items": self.items})


class ExplainGraph(harness.CommandTest):
    def save(self, graph, name="graph.json"):
        path = self.folder / name
        path.write_text(graph.text())
        return path

    def perceptron(self):
        """Matmuls, functions and sums; weights without bytes."""
        graph = Graph()
        x = graph.value("input", "x", [64, 128])
        for layer in range(2):
            w = graph.value("constant", f"w{layer}", [128, 128])
            h = graph.node("matmul", [x, w], [64, 128], f"fc{layer}", "0000000001000000")
            a = graph.node("silu", [h], [64, 128], f"act{layer}")
            x = graph.node("add", [a, x], [64, 128], f"sum{layer}")
        graph.output(graph.node("softmax", [x], [64, 128], "", "0100000000000000"))
        return self.save(graph)

    def chain(self):
        """So many sums that moving them is worth the copies, between two things that only the host does."""
        graph = Graph()
        x = graph.node("silu", [graph.value("input", "x", [512, 1024])], [512, 1024], "before")
        for i in range(40):
            x = graph.node("add", [x, x], [512, 1024], f"sum{i}")
        graph.output(graph.node("silu", [x], [512, 1024], "after"))
        return self.save(graph)

    def assert_adds_up(self, document):
        given = sum(copy["ns"] for copy in document["copies"] if copy["producer"] is None)
        chosen = [node["candidates"][0] for node in document["nodes"]]
        self.assertEqual(sum(one["cost_ns"] for one in chosen), document["node_ns"])
        self.assertEqual(sum(copy["ns"] for copy in document["copies"]), document["copy_ns"])
        self.assertEqual(sum(link["ns"] for link in document["links"]), document["copy_ns"])
        self.assertEqual(given, document["given_copy_ns"])
        self.assertEqual(document["node_ns"] + document["copy_ns"], document["sum_ns"])
        self.assertEqual(sum(one["cost_ns"] + one["copy_out_ns"] for one in chosen) + given, document["sum_ns"])
        for node in document["nodes"]:
            self.assertEqual([one["verdict"] for one in node["candidates"]].count("chosen"), 1)
            for one in node["candidates"]:
                if one["verdict"] not in ("chosen", "slower"):
                    continue
                parts = one["run_ns"] + one["lowering_ns"] + one["staging_ns"] + one["setup_share_ns"]
                self.assertEqual(one["cost_ns"], parts)
                self.assertAlmostEqual(one["run_ns"], one["declared_ns"] * one["correction"], delta=2)
                self.assertEqual(one["total_ns"], one["cost_ns"] + one["copy_in_ns"] + one["copy_out_ns"])
                self.assertEqual(one["regret_ns"], one["forced_ns"] - document["least_sum_ns"])

    def test_all_adds_up(self):
        for path in (self.perceptron(), self.chain()):
            for more in ((), TWO_QUEUES, ("--accept", "N0"), ("--device", "reference"), ("--repeats", "7")):
                document = self.json_of("explain", "--graph", path, *more)
                self.assertEqual(document["schema"], "tensormorph.explain-graph/1")
                self.assertEqual(document["node_count"], len(document["nodes"]))
                self.assert_adds_up(document)

    def test_nothing_was_measured(self):
        """Of a candidate with 0 samples both forms say the same of the correction."""
        whole = self.json_of("explain", "--graph", self.perceptron())["nodes"][1]["candidates"]
        alone = self.json_of("explain", "silu", "--dtype", "f32", "--shape", "64x128")["candidates"]
        for one in (*whole, *alone):
            if one["verdict"] in ("chosen", "slower") and one["samples"] == 0:
                self.assertEqual((one["correction"], one["correction_spread"]), (1, 1))
        self.assertIn(0, [one["samples"] for one in alone])

    def test_a_mixed_plan(self):
        path = self.chain()
        document = self.json_of("explain", "--graph", path, *TWO_QUEUES)
        devices = {node["name"]: node["device"] for node in document["nodes"]}
        self.assertEqual(devices["sum20"], "zoo_two_queues:0")
        self.assertNotEqual(devices["before"], "zoo_two_queues:0")
        self.assertEqual({(link["from"], link["to"]) for link in document["links"]},
                         {("host", "zoo_two_queues:0"), ("zoo_two_queues:0", "host")})
        self.assertIn("zoo_two_queues:0", {plan["device"] for plan in document["rejected"]} | {devices["sum0"]})
        out = self.run_command("explain", "--graph", path, *TWO_QUEUES, COLUMNS="100")[0]
        for said in ("a run takes: ", "copied from host to zoo_two_queues:0: 1 value, 2.10 MB", "critical path: ", "rejected: "):
            self.assertIn(said, out)
        out = self.run_command("explain", "--graph", path, "--node", "sum20", *TWO_QUEUES, COLUMNS="100")[0]
        self.assertIn("why there: it runs fastest there", out)
        self.assertIn("zoo_two_queues:0  chosen", out)

    def test_one_alone_is_not_worth_the_copies(self):
        graph = Graph()
        x = graph.value("input", "x", [512, 1024])
        graph.output(graph.node("add", [x, x], [512, 1024], "alone"))
        path = self.save(graph)
        node = self.json_of("explain", "--graph", path, "--node", "alone", *TWO_QUEUES)["nodes"][0]
        self.assertEqual(node["why"], "copies")
        fastest = node["candidates"][node["fastest"]]
        self.assertEqual(fastest["device"], "zoo_two_queues:0")
        self.assertLess(fastest["run_ns"], node["candidates"][0]["run_ns"])
        self.assertGreater(fastest["copy_in_ns"], 0)
        self.assertGreater(fastest["copy_out_ns"], 0)
        out = self.run_command("explain", "--graph", path, "--node", "alone", *TWO_QUEUES, COLUMNS="0")[0]
        self.assertRegex(out, r"why there: zoo_two_queues:0 would run it in .* less\), but with the copies .* longer")

    def test_changes_are_what_they_say(self):
        path = self.perceptron()
        document = self.json_of("explain", "--graph", path, *TWO_QUEUES)
        self.assertTrue(any(change["moved"] for change in document["changes"]))
        for index, change in enumerate(document["changes"]):
            if change["kind"] != "numerics":
                continue
            then = self.json_of("explain", "--graph", path, "--accept", f"N{change['value']}", *TWO_QUEUES)
            self.assertEqual(then["total_ns"], change["total_ns"])
            moves = {node["node"]: move["device"] for node in document["nodes"] for move in node["moves"] if move["change"] == index}
            self.assertEqual(len(moves), change["moved"])
            for node in then["nodes"]:
                now = document["nodes"][node["node"]]["device"]
                self.assertEqual(node["device"], moves.get(node["node"], now))

    def test_text_fits(self):
        for path in (self.perceptron(), self.chain()):
            for columns in (50, 80, 120):
                for more in ((), ("--node", "0"), ("--node", "2", "--accept", "N3")):
                    out = self.run_command("explain", "--graph", path, *more, *TWO_QUEUES, COLUMNS=str(columns))[0]
                    self.assertLessEqual(max(map(len, out.splitlines())), columns, out)
                    self.assertFalse([line for line in out.splitlines() if line != line.rstrip()])

    def test_what_has_no_room_is_told(self):
        """From 40 columns up who, when and how dear stays, and what does not is named; --wide shows it."""
        path = self.perceptron()
        add = ("add", "--dtype", "f32", "--shape", "64x64")
        graph, node = ("--graph", path), ("--graph", path, "--node", "1")
        for asked, kept in ((graph, ("node", "device", "time")), (node, ("device", "verdict", "total")), (add, ("device", "verdict", "price"))):
            wide = self.run_command("explain", *asked, *TWO_QUEUES, "--wide", COLUMNS="40")[0]
            every = re.split(r"  +", next(line for line in wide.splitlines() if re.match(r"(node +name|device) ", line)))
            self.assertNotIn("had no room", wide)
            for columns in (40, 50, 64, 80, 100, 120):
                out = self.run_command("explain", *asked, *TWO_QUEUES, COLUMNS=str(columns))[0]
                self.assertLessEqual(max(map(len, out.splitlines())), columns, out)
                shown = re.split(r"  +", next(line for line in out.splitlines() if re.match(r"(node|device)  ", line)))
                told = re.search(r"\(\d+ columns? had no room: (.*?); --wide and --json show all\)", " ".join(out.split()))
                self.assertEqual({*shown, *(told[1].split(", ") if told else ())}, set(every))
                self.assertLessEqual(set(kept), set(shown))

    def test_a_line_a_node(self):
        out = self.run_command("explain", "--graph", self.perceptron(), COLUMNS="80")[0]
        for name in ("fc0", "act0", "sum0", "fc1", "act1", "sum1"):
            self.assertRegex(out, rf"(?m)^\d+ +{name}  ")
        self.assertRegex(out, r"(?m)^6 +- +softmax  ")
        self.assertIn("7 nodes, 1 input, 2 constants, 1 output", out)

    def test_nodes_by_name_and_number(self):
        path = self.perceptron()
        self.assertEqual(*(self.run_command("explain", "--graph", path, "--node", node)[0] for node in ("act1", "4")))
        document = self.json_of("explain", "--graph", path, "--node", "act1")
        self.assertEqual([node["name"] for node in document["nodes"]], ["act1"])
        whole = self.json_of("explain", "--graph", path)
        self.assertEqual(document["nodes"][0], whole["nodes"][4])
        for wanted, said in (("act2", 'did you mean "act'), ("7", "numbers go from 0 to 6"), ("-1", "numbers go from 0 to 6")):
            err = self.run_command("explain", "--graph", path, f"--node={wanted}", code=2)[1]
            self.assertIn(said, err)
            self.assert_one_line(err)

    def test_limits_and_repeats(self):
        path = self.perceptron()
        document = self.json_of("explain", "--graph", path, "--repeats", "7", "--max-memory", "4M", "--accept", "N3")
        self.assertEqual((document["repeats"], document["max_memory_bytes"], document["accept"]), (7, 4 << 20, "N3"))
        self.assertTrue(all(memory["peak_bytes"] <= 4 << 20 for memory in document["memories"]))
        self.assertIn("memory", [change["kind"] for change in document["changes"]])
        err = self.run_command("explain", "--graph", path, "--max-memory", "1K", code=3)[1]
        self.assert_one_line(err)
        self.assertRegex(err, r"takes \d+ bytes of host memory, and 1024 are allowed in any one memory; allow more")

    def test_what_memory_keeps_away(self):
        """A candidate that only the limit keeps away is no slower one, and has no regret of 0."""
        path = self.folder / "state.json"
        whole = {"format": "f32", "dims": [64, 64]}
        node = {"kind": "node", "version": 1, "results": [whole]}
        path.write_text(json.dumps({"tensormorph_graph": 1, "items": [
            {"kind": "input", "value": 0, "name": "x", **whole},
            {**node, "values": [1], "op": "matmul", "attributes": "00" * 8, "inputs": [0, 0]},
            {**node, "values": [2], "op": "relu", "inputs": [1]},
            {"kind": "output", "value": 2, "name": "y"},
            {**node, "values": [3], "op": "transpose", "attributes": "01" + "00" * 7, "inputs": [0]},
            {"kind": "state", "value": 4, "name": "s", **whole},
            {"kind": "carry", "state": 4, "value": 1}]}))
        out = self.run_command("explain", "--graph", path, "--node", "0", "--max-memory", "49152")[0]
        self.assertRegex(out, r"(?m)^cpu:0 +no room +- ")
        node = self.json_of("explain", "--graph", path, "--node", "0", "--max-memory", "49152")["nodes"][0]
        verdicts = {one["device"]: one["verdict"] for one in node["candidates"]}
        self.assertEqual(verdicts, {"reference:0": "chosen", "cpu:0": "no room"})

    def test_what_does_not_go(self):
        path = self.perceptron()
        (self.folder / "damaged").write_text(path.read_text()[:-40])
        for code, arguments, said in (
            (2, [], "something is missing"),
            (2, ["add", "--graph", path], "an operation and a graph"),
            (2, ["--graph", path, "--dtype", "f32"], "--dtype goes with an operation only"),
            (2, ["add", "--dtype", "f32", "--shape", "4", "--node", "1"], "--node goes with --graph only"),
            (2, ["--graph", path, "--repeats", "0"], "--repeats wants 1 or more"),
            (2, ["--graph", path, "--repeats", "many"], "--repeats"),
            (2, ["--graph", path, "--device", "refrence"], "reference"),
            (3, ["--graph", "nowhere"], "nowhere"),
            (3, ["--graph", self.folder], ""),
            (3, ["--graph", "damaged"], ""),
        ):
            out, err = self.run_command("explain", *arguments, code=code)
            self.assertEqual(out, "")
            self.assertIn(said, err)
            self.assert_one_line(err)

    def test_nobody_can(self):
        """Who cannot is told with the node."""
        out, err = self.run_command("explain", "--graph", self.chain(), *TWO_QUEUES, "--device", "zoo_two_queues", "--no-device", "reference", code=3)
        self.assertEqual(out, "")
        self.assertIn("'before'", err)
        self.assertRegex(err, r"as asked: zoo_two_queues:0 \(.*; left out by request: .*\bcpu\b")
        self.assertRegex(err, r"; left out by request: .*\breference\b")
        self.assert_one_line(err)

    def test_who_was_asked_for_and_is_not_here(self):
        path, asked = self.perceptron(), ("--plugin", ZOO / "null.so", "--device", "zoo_null")
        said = r"nothing goes to zoo_null: it has no device here: ."
        for more in ((), ("--node", "1")):
            out = self.run_command("explain", "--graph", path, *more, *asked, COLUMNS="0")[0]
            self.assertRegex(out, r"(?m)^note: " + said)
            self.assertRegex(out, r"(?m)^note: left out by request, and not asked: .*cpu")
            notes = self.json_of("explain", "--graph", path, *more, *asked)["notes"]
            self.assertEqual(len(notes), 2)
            self.assertRegex(notes[0], "^" + said)
            self.assertRegex(notes[1], "^left out by request, and not asked: .*cpu")
        notes = self.json_of("explain", "--graph", path, "--device", "cpu")["notes"]
        self.assertTrue(all(note.startswith("left out by request") and "cpu" not in note for note in notes), notes)
        self.assertEqual(self.json_of("explain", "--graph", path)["notes"], [])

    def test_a_graph_that_is_too_large(self):
        graph = Graph()
        value = graph.value("input", "x", [1 << 30, 1 << 30])
        for i in range(3):
            value = graph.node("neg", [value], [1 << 30, 1 << 30], f"n{i}")
        graph.output(value)
        path = self.save(graph)
        self.assertIn(path.name, self.run_command("explain", "--graph", path, code=3)[1])

    def test_a_name_that_forges_output_is_refused_escaped(self):
        graph = Graph()
        graph.output(graph.node("neg", [graph.value("input", "x", [4])], [4], "ne\u202eg \u009b2J"))
        err = self.run_command("explain", "--graph", self.save(graph), code=3)[1]
        self.assert_one_line(err)
        self.assertNotIn("\u202e", err)

    def test_an_empty_graph(self):
        path = self.save(Graph())
        self.assertEqual(self.json_of("explain", "--graph", path)["nodes"], [])
        self.assertIn("0 nodes", self.run_command("explain", "--graph", path)[0])
        self.assertIn("has no nodes", self.run_command("explain", "--graph", path, "--node", "0", code=2)[1])


if __name__ == "__main__":
    harness.main()
