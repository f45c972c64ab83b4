"""The name of an IR that a table of ptxas's code belongs to."""

import unittest

import kernel_steps
import numbered_ir
from test_numbered_ir import IR


def digest(text):
    return kernel_steps.digest(numbered_ir.Kernel(text))


class DigestTest(unittest.TestCase):
    def test_where_a_source_lies_makes_no_difference_and_its_code_does(self):
        self.assertEqual(digest(IR), digest(f'source_filename = "/elsewhere/k.c"\n{IR}'.replace("!11", "!99")))
        self.assertNotEqual(digest(IR), digest(IR.replace("icmp ult i32 %0, 4", "icmp ult i32 %0, 5")))


if __name__ == "__main__":
    unittest.main()
