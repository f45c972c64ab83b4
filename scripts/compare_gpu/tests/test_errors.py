"""Summaries of errors."""

import unittest

import errors
import toolchain


def row(kernel, efficiency, reference, chosen="tuned"):
    return {
        "kernel": kernel,
        "set": chosen,
        "error": "total",
        "build": "gcc -O2",
        "model": "ipdom",
        "efficiency": efficiency,
        "reference": reference,
        "points": round(100 * (efficiency - reference), 2),
    }


class ErrorsTest(unittest.TestCase):
    def test_the_mean_is_of_absolute_points_and_the_worst_keeps_its_sign(self):
        lines = errors.summary([row("a", 0.5, 0.6), row("b", 0.9, 0.7), row("c", 0.3, 0.3, "held-out")])
        by_set = {line["set"]: line for line in lines}
        self.assertEqual(
            (by_set["tuned"]["mean"], by_set["tuned"]["worst"], by_set["tuned"]["worst_kernel"]), (15.0, 20.0, "b")
        )
        self.assertEqual((by_set["all"]["kernels"], by_set["all"]["mean"]), (3, 10.0))
        self.assertEqual(by_set["held-out"]["correlation"], "")

    def test_correlation_is_pearsons(self):
        self.assertEqual(errors.correlation([(0.1, 0.2), (0.2, 0.4), (0.3, 0.6)]), 1.0)
        self.assertEqual(errors.correlation([(0.1, 0.6), (0.2, 0.4), (0.3, 0.2)]), -1.0)


class BlocksTest(unittest.TestCase):
    def test_instructions_are_counted_by_the_blocks_that_labels_name(self):
        assembly = (
            "other:\n# %bb.0:\n\tretq\n.Lfunc_end0:\nkernel:\n# %bb.0:                                # %entry\n\t.loc 1 1\n\tmovl %eax, %ebx\n"
            ".LBB1_1:                                # %for.body\n\taddl %eax, %ebx\n\tjne .LBB1_1\n"
            '# %bb.2:                                # %"a b"\n\tretq\n.Lfunc_end1:\n'
        )
        self.assertEqual(toolchain.instructions_by_block(assembly, ["entry", "for.body", "a b"]), [1, 2, 1])


if __name__ == "__main__":
    unittest.main()
