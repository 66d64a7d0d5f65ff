# SPDX-License-Identifier: Apache-2.0
"""plugin check on the zoo: each animal that misbehaves fails for its own reason, and who keeps their word passes."""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import time

import harness
import zoo

NEG = ("--only", "neg", "--formats", "f32,f32")
HALVES = ("--only", "neg", "--formats", "f16,f16")
SUMS = ("--only", "add", "--formats", "f32,f32,f32")

# Animal -> exit code, what its check says, and options that lead there soon.
# Exit code 1: claims or manners are broken; 3: it does not load, or has no device.
MISBEHAVING = {
    "wrong": (1, r"FAILED neg f32,f32 .*element \d+ has bits", NEG),
    "liar": (1, r"FAILED matmul .*says yes to an unknown demand", ("--only", "matmul", "--formats", "f32,f32,f32")),
    "answers": (1, r"FAILED neg f32,f32 .*answers with level 77", NEG),
    "leaker": (1, r"FAILED neg f32,f32 .*the launch allocated memory beyond the declared workspace", NEG),
    "float_mode": (1, r"FAILED process: changes the floating-point mode in launch or wait", ("--only", "process")),
    "lost": (1, r"FAILED neg f32,f32 .*launch gave -5 after query said yes", NEG),
    "out_of_memory": (1, r"FAILED neg f32,f32 .*prepare gave -3 after query said yes", NEG),
    "stray_threads": (1, r"answers for epoch 1 after it announced epoch \d+", (*NEG, "--cases", 400)),
    "impatient": (1, r"FAILED order: waiting for ticket 0 gave 2", ("--only", "order")),
    "ticketless": (1, r"FAILED abandoned-work: launch left no ticket", ("--only", "abandoned-work")),
    "crashers/crashes_at_1": (1, r"FAILED process: ended the process with signal 6; the last call was \w+", ("--only", "process")),
    "careless/environment": (1, r"FAILED process: changes the environment in init\n", ("--only", "process")),
    "careless/opens_driver_late": (1, r"FAILED process: changes the environment before its first launch: in query, prepare or upload\n", ("--only", "process")),
    "careless/opens_rude_driver": (1, r"FAILED process: changes the environment in init\n", ("--only", "process")),
    "careless/folder": (1, r"FAILED process: changes the working directory in init\n", ("--only", "process")),
    "careless/signal": (1, r"FAILED process: changes the handler of signal 10 in init\n", ("--only", "process")),
    "careless/prints_in_init": (1, r"FAILED process: prints 9 bytes in init\n", ("--only", "process")),
    "careless/prints_in_prepare": (1, r"FAILED process: prints 9 bytes before its first launch: in query, prepare or upload\n", ("--only", "process")),
    "careless/crashes_in_prepare": (
        1,
        r"neg +\? +\? .*FAILED f32\n(.*\n)*FAILED neg f32,f32 .*ended the process with signal 11; the last call was prepare, of neg f32\[",
        NEG,
    ),
    "careless/wrong_halves": (
        1,
        r"FAILED neg f16,f16, changed as it proposes to f32,f32 .*element \d+ (.*\n) .*--only neg --formats f16,f16 --case",
        ("--only", "neg", "--formats", "f16,f16"),
    ),
    "hasty/early_wait": (1, r"FAILED waiting: wait came back before the work was done", ("--only", "waiting")),
    "hasty/empty_tickets": (1, r"FAILED waiting: wait came back before the work was done \(a download, with ticket 0\)", ("--only", "waiting")),
    "hasty/idle_cancel": (1, r"FAILED abandoned-work: cancel gave TM_OK while ticket \d+ of queue 0 was still pending", ("--only", "abandoned-work")),
    **{
        f"hasty/{slip}": (1, r"FAILED order: (asking about|waiting for) \d tickets gave TM_OK while number [2-9] of them was", ("--only", "order"))
        for slip in ("first_only", "first_only_near")
    },
    **{
        f"hasty/{slip}": (1, rf"FAILED timed-waits: {reason}", ("--only", "timed-waits"))
        for slip, reason in (
            ("takes_time_for_done", r"a wait for 20 ms gave TM_OK while the work was pending"),
            ("takes_time_for_done_near", r"a wait for 20 ms gave TM_OK while the work was pending"),
            ("takes_long_for_done", r"a wait for 20 ms gave TM_OK while the work was pending"),
            ("hangs_in_long_waits", r".*the last call was wait"),
            ("fails_late", r"a wait for 20 ms gave -\d+ "),
            ("gives_up_early", r"a wait for 20 ms gave TM_PENDING long before that"),
            ("waits_to_the_end", r"a wait for 20 ms came back only once the work was over, which took \d+ ms, 6 times of 6"),
            ("polls_to_the_end", r"a poll came back only once the work was over, which took \d+ ms, 6 times of 6"),
        )
    },
    "hasty/blocks": (1, r"FAILED full-queue: launch number [56]\d behind a long transfer waits for the device", ("--only", "full-queue")),
    "hasty/blocks_uploads": (1, r"FAILED full-queue: upload number [56]\d behind a long transfer waits for the device", ("--only", "full-queue")),
    "hasty/blocks_downloads": (1, r"FAILED full-queue: download number [56]\d behind a long transfer waits for the device", ("--only", "full-queue")),
    "hasty/blocks_near": (1, r"FAILED full-queue: launch number \d+ behind others waits for the device", ("--only", "full-queue")),
    "careless/any_format": (1, r"FAILED overclaims: says yes to neg with an operand of format 0x[0-9a-f]+, which it cannot know", ("--only", "overclaims")),
    "careless/believes": (
        1,
        r"FAILED compare f32,f32,bool .*with signal 6; the last call was query, of compare f32\[.*, with random attribute bytes; case",
        ("--only", "compare", "--formats", "f32,f32,bool"),
    ),
    "sly/copies_in_launch": (1, r"FAILED calls: launch came back twice: the worker has a copy of itself\n", NEG),
    "sly/copies_in_release": (1, r"FAILED calls: release came back twice: the worker has a copy of itself\n", NEG),
    "sly/copies_late": (1, r"FAILED calls: launch came back twice: the worker has a copy of itself\n", ("--only", "add", "--cases", 48)),
    "sly/copies_at_load": (1, r"FAILED process: when it is loaded it makes a copy of the process\n", ("--only", "process")),
    "sly/tells_oddly": (1, r"FAILED neg f32,f32 .*its text is not UTF-8 without control characters", NEG),
    "careless/twins": (1, r"FAILED description: has the uuid of its device [01]\n", ("--only", "description")),
    "careless/argues_late": (
        1,
        r"FAILED longer-structs: prepare of a longer struct whose tail is not zero gave -1",
        ("--only", "longer-structs"),
    ),
    "stale/always": (1, r"FAILED neg f32,f32 .*its epoch moved with each of 4 prepares; case", NEG),
    "stale/unannounced": (1, r"FAILED neg f32,f32 .*prepare gave 4 ", NEG),
    "careless/argues": (1, r"FAILED neg f32,f32 .*prepare gave -1 ", NEG),
    "hasty/boundless": (1, r"FAILED overclaims: says yes to an operand of \d+ bytes, which is more than its largest buffer", ("--only", "overclaims")),
    "culprits/aborts_at_the_end": (1, r"FAILED process: crashes when the process ends: signal 6", ("--only", "process")),
    "culprits/hangs_at_the_end": (1, r"FAILED process: keeps the process from ending: it did not end within 1 s", ("--only", "process")),
    "culprits/hangs_in_a_handler": (1, r"FAILED process: keeps the process from ending: it did not end within 1 s", ("--only", "process")),
    "culprits/leaves_at_the_end": (1, r"FAILED process: makes the exit code 0 when the process ends", ("--only", "process")),
    "culprits/hides_wrong_sums": (1, r"FAILED neg f32,f32 .*element \d+ has bits", NEG),
    "hangers/hangs_in_query": (1, r"FAILED copy f32,f32 .*did not end within 1 s; the last call was query, of copy f32.*; case 0, while it was only asked", ("--only", "copy")),
    "hangers/hangs_in_launch": (1, r"FAILED longer-structs: did not end within 1 s", ("--only", "longer-structs")),
    "hangers/hangs_in_prepare": (1, r"FAILED longer-structs: did not end within 1 s", ("--only", "longer-structs")),
    "hangers/hangs_in_release": (1, r"FAILED longer-structs: did not end within 1 s", ("--only", "longer-structs")),
    "hangers/hangs_in_wait": (1, r"FAILED longer-structs: did not end within 1 s", ("--only", "longer-structs")),
    "hangers/hangs_in_close": (1, r"FAILED closing: when the device was closed it did not end within 1 s; the last call was", ("--only", "neg")),
    "hangers/hangs_in_shutdown": (1, r"FAILED closing: when the device was closed it did not end within 1 s; the last call was", ("--only", "neg")),
    "hangers/hangs_in_init": (3, r"[a-z]+:0 cannot be used here: .*did not end within 1 s", ()),
    "hangers/hangs_in_open": (3, r"[a-z]+:0 cannot be used here: .*did not end within 1 s", ()),
    "sly/leaves_in_query": (1, r"FAILED neg f32,f32 .*ended the process with exit code 0; the last call was query", NEG),
    "sly/leaves_in_launch": (1, r"FAILED neg f32,f32 .*ended the process with exit code 0; the last call was launch", NEG),
    "sly/leaves_in_company": (1, r"FAILED threads: ended the process with exit code 0; the last call was", ("--only", "threads")),
    "sly/ends_its_thread": (1, r"FAILED neg f32,f32 .*ended the process with exit code 0; the last call was launch", NEG),
    "sly/closes_all": (1, r"FAILED process: closed a descriptor that is not its own", ("--only", "process")),
    "sly/has_odd_growth": (1, r"FAILED neg f32,f32 .*class N2 with bound 1, growth 77 and accumulator 0x[0-9a-f]+ means nothing", NEG),
    "sly/wants_absurd_workspace": (1, r"FAILED neg f32,f32 .*no host takes this yes: it asks for an absurd workspace", NEG),
    "sly/has_odd_reasons": (1, r"FAILED neg f16,f16 .*refuses for reasons 0xffffffff, of which some mean nothing", HALVES),
    "sly/proposes_nonsense": (1, r"FAILED neg f16,f16 .*of the 1 changes it proposes one has a kind", HALVES),
    "sly/names_odd_operand": (1, r"FAILED neg f16,f16 .*answers about operand 77, which there is not", HALVES),
    "sly/has_odd_status": (1, r"FAILED neg f32,f32 .*query gave 99; case 0", ("--only", "neg", "--budget", 2)),
    "sly/says_it_is_lost": (1, r"FAILED neg f32,f32 .*query gave -5: it says that the device is lost; case 0", NEG),
    "sly/announces_nobody": (1, r"FAILED calls: device_event: there is no device 9999", NEG),
    "sly/has_far_tickets": (1, r"FAILED calls: launch on queue \d gave a ticket of queue 99", NEG),
    "sly/has_endless_devices": (1, r"FAILED description: its list of devices has no end", ("--only", "description")),
    "sly/adds_to_constants": (1, r"FAILED add f32,f32,f32 .*element \d+ has bits", SUMS),
    "sly/saturates": (1, r"FAILED add f32,f32,f32 .*element \d+ has bits .* case 1: ", (*SUMS, "--case", 1)),
    "sly/flushes": (1, r"FAILED add f32,f32,f32 .*element \d+ has bits .* case 1: ", (*SUMS, "--case", 1)),
    "sly/loses_signs": (1, r"FAILED add f32,f32,f32 .*element \d+ has bits .* case 1: ", (*SUMS, "--case", 1)),
    **{
        f"sly/{slip}": (1, r"FAILED neg f32,f32 .*with signal (11|7); the last call was launch, .*\(inputs are read-only there, and no memory lies before or behind operands\)", NEG)
        for slip in ("touches_inputs", "overreads", "overreads_little", "overruns", "underreads")
    },
    "sly/prints_at_load": (1, r"FAILED process: when it is loaded it prints 9 bytes", ("--only", "process")),
    "sly/starts_at_load": (1, r"FAILED process: when it is loaded it starts 1 thread", ("--only", "process")),
    "sly/forks_at_load": (1, r"FAILED process: when it is loaded it leaves 1 process", ("--only", "process")),
    "sly/forks_in_init": (1, r"FAILED calls: left 1 process\(es\) running", ("--only", "neg")),
    **{
        f"sly/{slip}": (1, rf"FAILED process: changes {what} in launch or wait\n", ("--only", "process"))
        for slip, what in (
            ("unmasks", "the (floating-point mode|timers of the process)"),
            ("sets_an_alarm", "the timers of the process"),
            ("limits_files", "the limits of the process"),
            ("renames_its_caller", "the name of the thread"),
            ("reads_input", "the standard streams"),
        )
    },
    **{f"strait/{flaw}": (1, r"FAILED add f32,f32,f32 .*element \d+ has bits .* case 2\d{6}: ", ("--budget", 10, "--only", "add", "--seed", seed))
       for seed, flaw in enumerate(("behind_64k", "ranks", "broadcast", "tail", "no_tail"))},
    # Accepted only with a weight that is not transposed, which no random question may happen to have.
    "strait/product": (1, r"FAILED matmul f32,f32,f32 .*element \d+ has bits", ("--budget", 10, "--only", "matmul", "--seed", 4)),
    "sly/meets_itself": (1, r"FAILED add f32,f32,f32 .*element 0 has bits .*\(the first two in one place\)", SUMS),
    **{
        f"sly/{slip}": (1, rf"FAILED description: {what}", ("--only", "description"))
        for slip, what in (
            ("changes_its_name", "describes the same device differently the second time"),
            ("has_no_name", "its name is no text: 5 bytes at"),
            ("has_a_long_name", "its name is no text: 1099511627776 bytes at"),
            ("has_a_rude_name", r'its name is no text: "\\x1b\[31mred" is not UTF-8 without control characters'),
            ("has_a_torn_name", r'its name is no text: "caf\\xc3" is not UTF-8 without control characters'),
            ("has_an_odd_driver", r'its driver\'s version is no text: "1\\n2" is not UTF-8 without control characters'),
            ("has_an_odd_memory", r'the name of a memory is no text: "\\xff\\xfe" is not UTF-8 without control characters'),
            ("helps_oddly", r'the help of an option is no text: "Rings the bell \(\\x07\) when it is done\." is not UTF-8'),
            ("has_no_granules", "a memory has a granule of 0, where 1 is the least"),
            ("opens_for_ever", r"declares 18446744073709551615 ns for being opened"),
        )
    },
    "sly/tells_endlessly": (1, r"FAILED neg f32,f32 .*its text has 1099511627776 bytes, and none has more than 65536", NEG),
    "sly/cries_for_help": (1, r"FAILED calls: device_event: says that the device is lost", NEG),
    **{
        f"sly/{slip}_late": (1, rf"FAILED calls: {what}", ("--only", "add", "--cases", 48))
        for slip, what in (
            ("masks_files", "changes the file mode mask after some launches"),
            ("prints", r"prints \d+ bytes after some launches"),
            ("keeps_files", r"leaves \d+ more descriptors open than before"),
            ("signals", "changes the handler of signal 12 after some launches"),
        )
    },
    **{
        f"parallel/{slip}": (1, reason, options)
        for slip, reason, options in (
            ("forgets_cancel", r"FAILED abandoned-work: of work that was under way when its queue was cancelled wait gave TM_OK, and its result is wrong", ("--only", "abandoned-work")),
            ("cancels_one", r"FAILED abandoned-work: cancel gave TM_OK while ticket \d+ of queue 1 was still pending", ("--only", "abandoned-work")),
            ("ignores_waits", r"FAILED order: a download that waits for another queue's launch does not see its result", ("--only", "order")),
            ("ignores_second_wait", r"FAILED order: a (launch|upload|download|copy) is over before another queue's work that it waits for, number 2 of 2 tickets", ("--only", "order")),
            ("minds_company", r"FAILED many-launches: launch \d+ of one kernel, with others under way, is wrong: element 0", ("--only", "many-launches")),
            ("has_a_short_ring", r"FAILED many-launches: launch \d+ of one kernel, with others under way, is wrong: element 0", ("--only", "many-launches")),
        )
    },
    **{
        f"packer/{slip}{form}": (1, rf"FAILED {manner}: {reason}", ("--only", manner))
        for form in ("", "_packed")
        for slip, manner, reason in (
            ("keeps_weights", "many-launches", r"launch \d+ of one kernel is wrong: "),
            ("shares_scratch", "threads", r"queue \d, while other threads launch: "),
        )
    },
    "narrow/of_16_bits": (1, r"FAILED gather f32,i64,f32 .*element \d+ has bits", ("--only", "gather", "--formats", "f32,i64,f32")),
    "narrow/of_32_bits": (1, r"FAILED gather f32,i64,f32 .*element \d+ has bits", ("--only", "gather", "--formats", "f32,i64,f32")),
    "sly/minds_company": (1, r"FAILED threads: queue \d, while other threads launch: element 0", ("--only", "threads")),
    "sly/tires": (1, r"FAILED many-launches: launch 10 of one kernel is wrong: element 0", ("--only", "many-launches")),
    "sly/expires": (1, r"FAILED calls: query: refuses at the end what it said yes to first, in the same epoch: case \d+: neg", ("--budget", 4)),
    "sly/is_another_in_each_process": (1, r"FAILED calls: device_info: describes the same device differently in another process", ("--only", "neg")),
    **{
        f"sly/says_{slip}_while_closed": (1, r"FAILED life-cycle: answers differently before it is opened and after: add f32\[", ("--only", "life-cycle"))
        for slip in ("yes", "no", "less")
    },
    **{f"offsets/offsets_of_{bits}_bits": (1, r"FAILED neg f32,f32 .*wrote \d+ bytes before its output", NEG) for bits in (12, 16)},
    "offsets/full_for_good": (1, r"FAILED full-queue: [a-z]+ behind long work gave -3 \(\)\n", ("--only", "full-queue")),
    "offsets/idle_flush": (1, r"FAILED order: flushed work does not begin before it is waited for, 3 times of 3\n", ("--only", "order")),
    "sly/falls_back": (1, r"FAILED calls: device_info: the epoch fell from 2 to 1\n", NEG),
    "sly/answers_fall_back": (1, r"FAILED calls: query: answers for epoch 2 after an answer for epoch 3\n", NEG),
    "hasty/reads_behind_uploads": (1, r"FAILED transfers: ended the process with signal (11|7); the last call was upload", ("--only", "transfers")),
    "hasty/has_no_empty_buffers": (1, r"FAILED buffers: makes a buffer of 0 bytes and gives no handle", ("--only", "buffers")),
    "sly/writes_to_the_question": (1, r"FAILED calls: query: writes to what it is given to read\n", NEG),
    "sly/keeps_the_question": (1, r"with signal 11; the last call was prepare, .*it looks at what it was given for the time of an earlier call", ("--budget", 4)),
    **{
        f"sly/keeps_the_{what}": (1, r"FAILED neg f32,f32 .*with signal 11; the last call was launch, .*it looks at what it was given for the time of an earlier call", NEG)
        for what in ("operation", "answer", "launch")
    },
    "reference_name": (3, r"its name is that of the library's own reference", ()),
    "constructor_aborts": (3, r"loading it ends the process with signal 6", ()),
    "constructor_leaves": (3, r"loading it ends the process with exit code 3", ()),
    "query_aborts": (3, r"tm_plugin_query ends the process with signal 6", ()),
    "null_header": (3, r"it does not serve contract version", ()),
    "wrong_magic": (3, r"wrong magic number", ()),
    "wrong_size": (3, r"wrong header size", ()),
    "wrong_major": (3, r"made for contract version 7", ()),
    "wrong_minor": (3, r"which never was", ()),
    "wrong_flags": (3, r"built otherwise than this library", ()),
    "wrong_fingerprint": (3, r"built against a changed header", ()),
    "wrong_name": (3, r"its name must be of the form lower_snake", ()),
    "endless_version": (3, r"its version is no sound string", ()),
    "endless_traits": (3, r"it offers \d+ traits", ()),
    "other_trait": (3, r"it offers no tensormorph.accelerator-backend", ()),
    "no_launch": (3, r"the mandatory function 'launch' is missing", ()),
    "outside_launch": (3, r"its function 'launch' lies outside its own file", ()),
    "short_table": (3, r"its table has a size of 8 bytes", ()),
    "short_option": (3, r"its option 0 is not sound", ()),
    "foreign_entry": (3, r"it does not export tm_plugin_query itself", ()),
    "no_entry": (3, r"it does not export tm_plugin_query", ()),
    "null": (3, r"zoo_null:0 cannot be used here: no device", ()),
    "device_all_ones": (3, r"the device has unknown flags", ()),
    "device_no_list": (3, r"the device's list of memories is not sound", ()),
    "device_null_memory": (3, r"the device's list of memories is not sound", ()),
    "device_no_memory": (3, r"the device has no sound number of memories", ()),
    "device_odd_alignment": (3, r"the alignment of a memory is no power of two", ()),
    "device_absurd_memory": (3, r"a granule of a memory is too large", ()),
    "device_short_memory": (3, r"a memory is shorter than every version of its struct", ()),
    "device_strange_status": (3, r"device_info gave a status that it may not give", ()),
}
# A sanitizer keeps what was freed, and that is not counted.
LEAKY = {
    **{
        f"sly/{slip}": (1, rf"FAILED growth: keeps \d+ bytes more of the process's memory with each of its {what}\n", ("--only", "growth"))
        for slip, what in (("leaks_lives", "lives"), ("leaks_prepares", "prepares"), ("leaks_launches", "launches"), ("maps_in_launches", "launches"))
    },
    "hasty/leaks_buffers": (1, r"FAILED growth: keeps \d+ bytes more of the process's memory with each of its buffers\n", ("--only", "growth")),
    "hasty/runs_out": (1, r"FAILED growth: fails with status -\d+ after 20 buffers that went well\n", ("--only", "growth")),
}
HONEST = ("honest", "strait/none", "greased", "old", "busy", "slow", "unpriced", "two_queues", "own_thread", "hasty/none", "hasty/none_near", "parallel/none", "packer/none", "packer/none_packed", "narrow/of_64_bits", "careless/trusts", "stale/recovers", "stale/withdraws")


class Zoo(zoo.ZooTest):
    def test_each_animal_fails_for_its_own_reason(self):
        for name, (code, reason, options) in MISBEHAVING.items():
            with self.subTest(animal=name):
                got, out, err = self.check(self.animal(name), "--deadline", 1, *options)
                said = (out + err)[-2000:]
                self.assertTrue(re.search(reason, out + err), f"expected: {reason}\n{said}")
                self.assertEqual(got, code, said)

    def test_who_keeps_their_word_passes(self):
        # They mostly wait.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            found = pool.map(lambda name: self.check(self.animal(name), "--budget", 5), HONEST)
        for name, (code, out, err) in zip(HONEST, found):
            with self.subTest(animal=name):
                self.assertEqual((code, err), (0, ""), out)
                self.assertRegex(out, r"\d+ of \d+ claims checked, 0 failures(, \d+ of \d+ manners not tried)?\n\Z")
                self.assertRegex(out, r"reached \d+ of the \d+ combinations")

    def test_what_was_not_tried_is_counted_in_the_last_line(self):
        out = self.check(self.animal("honest"), "--budget", 2)[1]
        untried = len(re.findall(r"(?m)^[a-z-]+ +not tried: ", out))
        all_checks = len(re.findall(r"(?m)^[a-z-]+ +(not tried: |ok(, in part: .*)?$)", out))
        self.assertGreater(untried, 0, out)
        self.assertRegex(out, rf", 0 failures, {untried} of {all_checks} manners not tried\n\Z")

    def test_what_was_taken_back_is_told(self):
        """Its epoch moves when neg is prepared: from then on it says no."""
        code, out, _ = self.check(self.animal("stale/withdraws"), "--only", "neg")
        self.assertEqual(code, 3, out)
        self.assertRegex(out, r"\ntaken back when prepared, as the device's epoch moved: [12]\n")
        self.assertIn("NOTHING WAS CHECKED: it took back all that it claimed when it was prepared\n", out)
        code, out, _ = self.check(self.animal("stale/recovers"), "--only", "neg")
        self.assertEqual(code, 0, out)
        self.assertNotIn("taken back", out)

    def test_nothing_checked_is_no_success(self):
        honest = self.animal("honest")
        for options, reason in (
            (("--only", "matmul"), "it refuses everything that was asked"),
            (("--only", "neg", "--formats", "f16,f16", "--case", 2), "it refuses this case, or there is no such case"),
            (("--only", "buffers"), "it works in the host's memory"),
        ):
            with self.subTest(options=options):
                code, out, _ = self.check(honest, *options)
                self.assertEqual(code, 3, out)
                self.assertIn(f"NOTHING WAS CHECKED: {reason}\n", out)
        code, out, _ = self.check(honest, "--only", "order")
        self.assertEqual((code, out.splitlines()[-1]), (0, "zoo_honest:0: 1 check, 0 failures"))

    def test_who_keeps_memory_fails_for_it(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            found = pool.map(lambda name: self.check(self.animal(name), *LEAKY[name][2]), LEAKY)
        for name, (code, out, _) in zip(LEAKY, found):
            with self.subTest(animal=name):
                if "not tried: a sanitizer keeps what was freed" in out:
                    self.skipTest("a sanitizer keeps what was freed")
                self.assertRegex(out, LEAKY[name][1])
                self.assertEqual(code, LEAKY[name][0], out)

    def test_the_report_is_all_that_is_printed(self):
        """What a constructor prints is kept out of it."""
        code, out, err = self.check(self.animal("sly/prints_at_load"), "--only", "process", "--json")
        self.assertEqual((code, err), (1, ""))
        self.assertEqual(json.loads(out)["devices"][0]["checks"][0]["text"], "when it is loaded it prints 9 bytes")

    def test_a_document_holds_nothing_that_a_plugin_prints(self):
        animal = self.animal("careless/prints_in_init")
        document = self.json_of("bench", "neg", "--dtype", "f32", "--shape", 100, "--repeat", 1, "--plugin", animal)
        self.assertIn("zoo_prints_in_init:0", [result["device"] for result in document["results"]])

    def test_a_name_is_made_fit_for_people_once(self):
        rude = self.animal("sly/has_a_rude_name")
        out = self.run_command("backends", "--plugin", rude)[0]
        self.assertIn(r" \x1b[31mred", out)
        self.assertNotIn(r"\\x1b", out)

    def test_a_text_that_is_none_is_a_note(self):
        for slip, what in (
            ("has_a_rude_name", "the name of device 0"),
            ("has_a_torn_name", "the name of device 0"),
            ("has_a_long_name", "the name of device 0"),
            ("has_an_odd_driver", "the driver version of device 0"),
            ("has_an_odd_memory", "the name of memory 0 of device 0"),
            ("helps_oddly", "the help of its option loud"),
        ):
            with self.subTest(slip=slip):
                note = self.note_of(self.animal(f"sly/{slip}"))
                self.assertEqual(note, f"in its trial it gave {what}, which is not UTF-8 without control characters")
        self.assertEqual(self.note_of(self.animal("honest")), "")

    def note_of(self, animal):
        found = [b for b in self.json_of("backends", "--plugin", animal)["backends"] if b["origin"] == str(animal)]
        self.assertEqual([b["state"] for b in found], ["ready"])
        return found[0]["note"]

    def test_a_heading_has_no_more_than_the_name(self):
        out = self.check(self.animal("sly/has_a_long_name"), "--only", "neg", "--cases", 2)[1]
        self.assertRegex(out, r"\Azoo_has_a_long_name:0   \(1 \S+has_a_long_name\.so\)\n")

    def test_a_copy_of_the_worker_is_not_believed(self):
        """Nor counted: what it would have found is what the worker finds."""
        counts = lambda animal: re.search(r"\nadd +native +N0 +(\d+) +(\d+) ", self.check(animal, "--only", "add", "--cases", 48)[1]).groups()
        self.assertEqual(counts(self.animal("sly/copies_late")), counts(self.animal("honest")))
        self.assertEqual(self.note_of(self.animal("sly/copies_in_launch")), "in its trial it made a copy of the process")

    def test_progress_fits_the_terminal_and_ends_its_line(self):
        command = ["plugin", "check", self.animal("honest"), "--full"]
        _, text = self.read_terminal(command, lambda text: re.search(r"\rdevice 0: [^\r]*\r", text), COLUMNS="20")
        lines = re.findall(r"\r(device 0: [^\r\x1b\n]*)\x1b\[K", text)
        self.assertGreater(len(lines), 0, text)
        self.assertEqual([line for line in lines if len(line) > 19], [])
        self.assertTrue(text.endswith("\r\n"), text[-200:])

    def test_the_number_of_devices_is_told(self):
        for animal, text in (("honest", "it has 1 device, number 0"), ("careless/seven", "it has 7 devices, 0 to 6")):
            code, _, err = self.check(self.animal(animal), "--device", 9)
            self.assertEqual(code, 3)
            self.assertRegex(err, rf":9 cannot be used here: no device: {text}\n\Z")

    def test_a_file_that_is_named_twice(self):
        honest = self.animal("honest")
        other = self.folder / "honest_too.so"
        other.symlink_to(honest)
        twice = self.run_command("backends", "--plugin", honest, "--plugin", honest)[1]
        self.assertRegex(twice, r"the same file is loaded already\n")
        self.assertIn("the same file is loaded already under another name\n", self.run_command("backends", "--plugin", honest, "--plugin", other)[1])

    def test_a_measurement_tells_its_constants(self):
        out = self.run_command("bench", "matmul", "--dtype", "f32", "--shape", "8x8,8x8", "--constant", 1, "--repeat", 1, "--device", "reference")[0]
        self.assertTrue(out.startswith("matmul f32 8x8, f32 8x8 (constant)\n"), out)

    def test_nobody_who_is_left_behind_is_waited_for(self):
        """Whom it forks sleeps for longer than this test may take, and holds what the check reads from."""
        code, out, _ = self.check(self.animal("sly/forks_in_init"), "--only", "process")
        self.assertEqual(code, 1, out)

    def test_what_is_never_accepted_is_told(self):
        """It knows neg, by its reasons, and refuses it whatever it is asked; strange operations it does not know."""
        code, out, _ = self.check(self.animal("sly/knows_better"), "--budget", 3)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"\nrefused whenever asked, though it seems to know them: neg\n")
        code, out, _ = self.check(self.animal("honest"), "--budget", 3, "--json")
        self.assertEqual((code, json.loads(out)["devices"][0]["never_accepted"]), (0, ""))

    def test_a_check_that_is_left_out_is_named(self):
        code, out, _ = self.check(self.animal("careless/environment"), "--leave-out", "process", "--only", "process")
        self.assertEqual(code, 3, out)
        self.assertRegex(out, r"process +not tried: left out\n")

    def test_what_a_driver_adds_once_is_a_note(self):
        animal = self.animal("careless/opens_driver")
        code, out, _ = self.check(animal, "--only", "process")
        said = "driver.so, which it opens, sets ZOO_DRIVER_WAS_HERE once"
        self.assertEqual(code, 0, out)
        self.assertRegex(out, rf"process +ok\n +note: {said}\n")
        code, out, _ = self.check(animal, "--only", "process", "--json")
        check = json.loads(out)["devices"][0]["checks"][0]
        self.assertEqual((code, check["result"], check["text"], check["note"]), (0, "ok", None, said))
        code, out, _ = self.check(self.animal("careless/opens_busy_driver"), "--only", "process")
        self.assertEqual(code, 0, out)
        self.assertIn("note: driver.so, which it opens, sets ZOO_DRIVER_WAS_HERE 3 times\n", out)

    def test_claims_keep_their_share_of_the_budget(self):
        """Each call of its manners takes so long that they use up the time of all."""
        code, out, _ = self.check(self.animal("careless/dawdles"), "--budget", 2)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"[1-9]\d* of \d+ claims checked, 0 failures(, \d+ of \d+ manners not tried)?\n\Z")

    def test_a_budget_is_kept_where_everything_is_slow(self):
        """A compiler that takes 0.1 s would be called a thousand times for the random questions alone."""
        code, out, _ = self.check(self.animal("careless/slow_compiler"), "--budget", 2)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"overclaims +(not tried: out of time|ok, in part: \d+ of 3000 questions before its time was over)\n")
        self.assertRegex(out, r"reached [1-9]\d* of the \d+ combinations of formats that it takes within 2 s;")

    def test_a_budget_is_kept_where_questions_are_slow(self):
        """Each takes 0.1 s: there is no time for the thousands that are asked otherwise, and the device is told so."""
        code, out, _ = self.check(self.animal("careless/ponders"), "--budget", 2)
        self.assertEqual(code, 1, out)
        self.assertRegex(out, r"FAILED question-time: query takes [1-9]\d\d+\.\d ms \(the median of \d+\), where microseconds are right and 2 ms the most\n")
        self.assertIn("--only question-time\n", out)
        self.assertRegex(out, r"\nended early: there is no time for 100 questions that take [1-9]\d\d+ ms each\n")

    def test_a_check_ends_with_its_command(self):
        """Killed, so that the command itself can do nothing about it."""
        animal = self.animal("hangers/hangs_in_init")
        command = subprocess.Popen([harness.COMMAND, "plugin", "check", str(animal)], env=self.environment(), cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = pathlib.Path(f"/proc/{command.pid}/task/{command.pid}/children")
        is_checked = lambda pid: (f := pathlib.Path(f"/proc/{pid}/status")).exists() and "(zombie)" not in f.read_text()
        until = time.monotonic() + 60
        worker = ""
        while not worker and time.monotonic() < until:          # the worker of the program that it runs
            program = children.read_text().split()
            grandchildren = pathlib.Path(f"/proc/{program[0]}/task/{program[0]}/children") if program else None
            worker = grandchildren.read_text() if grandchildren and grandchildren.exists() else ""
            time.sleep(0.01)
        command.kill()
        command.wait()
        for pid in program[0], worker.split()[0]:
            while is_checked(pid) and time.monotonic() < until:
                time.sleep(0.01)
            self.assertFalse(is_checked(pid), f"{pid} goes on")

    def test_a_budget_is_cut_aloud_or_not_at_all(self):
        """Ten seconds for each of seven devices are more than the minute that all have where nobody said how long."""
        animal = self.animal("careless/seven")
        code, out, err = self.check(animal, "--quick", "--only", "neg")
        self.assertEqual((code, err), (0, ""), out)
        self.assertEqual(out.count(" within 8.57 s (7 devices share 60 s; --budget gives each its own); "), 7, out)
        code, out, _ = self.check(animal, "--budget", 100, "--only", "neg", "--json")
        self.assertEqual([code] + [device["budget_ns"] for device in json.loads(out)["devices"]], [0] + 7 * [100 * 10**9])

    def test_the_host_refuses_what_no_buffer_holds(self):
        """The device says yes to anything; the host knows its largest buffer."""
        flags = ("neg", "--plugin", self.animal("hasty/boundless"), "--dtype", "f32", "--shape")
        devices = self.json_of("explain", *flags, "20000000")
        fits = self.json_of("explain", *flags, "16000000")
        texts = [json.dumps(plan) for plan in (devices, fits)]
        self.assertIn("an operand is larger than the device's largest buffer", texts[0])
        self.assertNotIn("largest buffer", texts[1])

    def test_a_report_fits_its_terminal(self):
        environment = {**self.environment(), "COLUMNS": "80"}
        for animal in ("honest", "careless/wrong_halves"):
            done = subprocess.run(
                [harness.COMMAND, "plugin", "check", str(self.animal(animal)), "--budget", "5"],
                env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
            )
            lines = [line for line in done.stdout.splitlines()[1:] if " plugin check " not in line]
            self.assertEqual([line for line in lines if len(line) > 80], [])


if __name__ == "__main__":
    harness.main()
