"""What is read from a listing, and the plain table of it."""

import unittest

import listing
from listing import Row

# In the form of nvdisasm's listings, written for this test.
LISTING = """\
\t.section\t.text.kernel,"ax",@progbits
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/k.c", line 1
        /*0010*/                   S2R R7, SR_TID.X ;
        /*0020*/                   BSSY B2, `(.L_x_0) ;
\t//## File "/k.c", line 2
        /*0030*/                   ISETP.NE.AND P0, PT, R7, RZ, PT ;
        /*0040*/              @!P0 BREAK B2 ;
        /*0050*/              @!P0 BRA P1, `(.L_x_1) ;
\t//## File "/k.c", line 3
        /*0060*/               @P0 IADD3 R7, R7, 0x1, RZ ;
        /*0070*/               @P0 IADD3 R8, R8, 0x1, RZ ;
        /*0080*/                   STG.E desc[UR4][R2.64], R7 ;
.L_x_2:
        /*0090*/                   BSYNC.RECONVERGENT B2 ;
.L_x_0:
        /*00a0*/                   WARPSYNC.ALL ;
.L_x_1:
\t//## File "/k.c", line 4
        /*00b0*/              @!P2 EXIT ;
        /*00c0*/                   EXIT ;
.L_x_3:
        /*00d0*/                   BRA `(.L_x_3);
        /*00e0*/                   NOP;
\t.section\t.debug_line,"",@progbits
"""

ROWS = [
    # What stands before the first line belongs to the entry.
    Row(0x00, 0, "plain", 2),
    Row(0x20, 0, "bssy", 1, "", 2, 0xA0),
    Row(0x30, 1, "plain"),
    Row(0x40, 1, "break", 1, "!P0", 2),
    Row(0x50, 1, "bra", 1, "!P0&P1", -1, 0xB0),
    Row(0x60, 2, "plain", 2, "P0"),
    Row(0x80, 2, "store"),
    Row(0x90, 2, "bsync", 1, "", 2),
    Row(0xA0, 2, "warpsync"),
    Row(0xB0, 3, "exit", 1, "!P2"),
    Row(0xC0, 3, "exit"),
]


class ListingTest(unittest.TestCase):
    def test_like_instructions_are_one_row_and_control_flow_has_rows_of_its_own(self):
        self.assertEqual(listing.parse(LISTING), ROWS)

    def test_a_table_holds_all_of_a_listing(self):
        self.assertEqual(listing.from_table(listing.to_table(ROWS)), ROWS)

    def test_a_label_ends_a_row(self):
        text = LISTING.replace("        /*0070*/", ".L_x_9:\n        /*0070*/")
        self.assertIn(Row(0x70, 2, "plain", 1, "P0"), listing.parse(text))

    def test_control_flow_that_is_not_followed_is_named(self):
        with self.assertRaisesRegex(listing.ListingError, "CALL.REL.NOINC at 0x30"):
            listing.parse(LISTING.replace("ISETP.NE.AND P0, PT, R7, RZ, PT", "CALL.REL.NOINC `(.L_x_2)"))


if __name__ == "__main__":
    unittest.main()
