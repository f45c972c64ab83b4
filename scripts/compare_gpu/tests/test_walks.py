"""Lanes' paths through the IR as walks through other code for it."""

import unittest

import reference
import walks
import weights
from listing import Row

# if (a) { 1 } else { 2 } 3, as blocks 0 to 3.
DIAMOND = [[1, 2], [3], [3], []]


def efficiency(rows, successors, paths):
    found = walks.Matcher(rows, successors).match(paths)
    return reference.Replay(rows, [walk.outcomes for walk in found]).run()


class WalksTest(unittest.TestCase):
    def test_the_side_of_a_branch_is_found_by_the_blocks_that_stand_there(self):
        # The branch is turned round: block 1 follows, block 2 is jumped to.
        rows = [
            Row(0, 0, "bssy", 1, "", 0, 6),
            Row(1, 0, "bra", 1, "P0", -1, 4),
            Row(2, 1, "plain", 7),
            Row(3, 1, "bra", 1, "", -1, 5),
            Row(4, 2, "plain", 9),
            Row(5, 2, "bsync", 1, "", 0),
            Row(6, 3, "exit"),
        ]
        found = walks.Matcher(rows, DIAMOND).match([[0, 1, 3], [0, 2, 3], [0, 2, 3]])
        self.assertEqual([walk.outcomes for walk in found], [[False], [True], [True]])
        self.assertEqual(found[1].visits, [(0, (0,)), (4, (2,)), (5, ()), (6, (3,))])

    def test_arms_that_became_predicates_are_no_branches(self):
        rows = [Row(0, 0, "plain", 2), Row(2, 1, "plain", 1, "P0"), Row(3, 2, "plain", 1, "!P0"), Row(4, 3, "exit")]
        matcher = walks.Matcher(rows, DIAMOND)
        found = matcher.match([[0, 1, 3], [0, 2, 3]])
        self.assertEqual(matcher.predicated, {0})
        self.assertEqual([walk.outcomes for walk in found], [[], []])
        self.assertEqual(found[0].visits, [(0, (0, 1, 3))])
        # Weighed with 1, 10, 100 and 1000 instructions: arms are run one after the other, what is around them together.
        weighed = weights.Weighed(found, [1, 10, 100, 1000])
        reference.Replay(rows, [[], []], weighed.visit).run()
        self.assertEqual((weighed.warp, weighed.thread, weighed.active), (1111, 2 * 1001 + 110, 2 * 1111))

    def test_the_jump_of_an_arm_that_became_predicated_stands_for_the_branch_to_it(self):
        rows = [
            Row(0, 0, "plain", 2),
            Row(1, 1, "plain", 1, "P0"),
            Row(2, 1, "bra", 1, "P0", -1, 4),
            Row(3, 2, "plain", 5),
            Row(4, 3, "exit"),
        ]
        found = walks.Matcher(rows, DIAMOND).match([[0, 1, 3], [0, 2, 3]])
        self.assertEqual([walk.outcomes for walk in found], [[True], [False]])

    def test_two_branches_that_were_merged_are_one_decision(self):
        # 0: if (a) goto 3; 1: if (b) goto 3; 2; 3. The code has one branch, with the line of block 1.
        successors = [[3, 1], [3, 2], [3], []]
        rows = [
            Row(0, 0, "plain"),
            Row(1, 1, "bra", 1, "P0", -1, 3),
            Row(2, 2, "plain", 4),
            Row(3, 3, "exit"),
        ]
        found = walks.Matcher(rows, successors).match([[0, 3], [0, 1, 3], [0, 1, 2, 3]])
        self.assertEqual([walk.outcomes for walk in found], [[True], [True], [False]])

    def test_a_loop_whose_test_was_copied_before_it_is_followed(self):
        # 0; 1: if (done) goto 3; 2: goto 1; 3. The code tests before the loop and at its end.
        successors = [[1], [3, 2], [1], []]
        rows = [
            Row(0, 0, "plain"),
            Row(1, 1, "bra", 1, "P0", -1, 4),
            Row(2, 2, "plain", 3),
            Row(3, 1, "bra", 1, "!P0", -1, 2),
            Row(4, 3, "exit"),
        ]
        found = walks.Matcher(rows, successors).match([[0, 1, 3], [0, 1, 2, 1, 2, 1, 3]])
        self.assertEqual([walk.outcomes for walk in found], [[True], [False, True, False]])

    def test_a_wrong_guess_is_turned_round(self):
        # Blocks 1 and 2 have no code of their own before their branches; only what follows tells the sides apart.
        successors = [[1, 2], [3, 5], [4, 5], [5], [5], []]
        rows = [
            Row(0, 0, "bra", 1, "P0", -1, 3),
            Row(1, 2, "bra", 1, "P1", -1, 6),
            Row(2, 4, "bra", 1, "", -1, 6),
            Row(3, 1, "bra", 1, "P1", -1, 6),
            Row(4, 3, "plain", 1),
            Row(6, 5, "exit"),
        ]
        found = walks.Matcher(rows, successors).match([[0, 1, 5], [0, 2, 4, 5], [0, 1, 3, 5], [0, 2, 5]])
        self.assertEqual(
            [walk.outcomes for walk in found], [[True, True], [False, False], [True, False], [False, True]]
        )

    def test_a_first_test_that_ptxas_knew_the_answer_of_is_left_out(self):
        # 0; 1: store, if (done) goto 3; 2: goto 1; 3. The code goes from the first turn's copy of block 1 into block 2.
        successors = [[1], [3, 2], [1], []]
        rows = [
            Row(0, 0, "plain"),
            Row(1, 1, "store", 1),
            Row(2, 2, "plain", 3),
            Row(3, 1, "store", 1),
            Row(4, 1, "bra", 1, "P0", -1, 2),
            Row(5, 3, "exit"),
        ]
        paths = [[0, 1, 2, 1, 3], [0, 1, 2, 1, 2, 1, 3]]
        _, found = walks.match(rows, successors, paths, [0, 1, 0, 0])
        self.assertEqual([walk.outcomes for walk in found], [[False], [True, False]])

    def test_code_of_something_else_is_refused(self):
        rows = [Row(0, 1, "bra", 1, "P0", -1, 1), Row(1, 3, "exit")]
        with self.assertRaisesRegex(walks.WalkError, "belongs to block 3|belongs to block 1|not in the code"):
            walks.Matcher(rows, [[1], [2], [3], []]).match([[0, 1, 2, 3]])

    def test_a_store_that_is_not_run_as_often_as_its_block_is_entered_is_refused(self):
        rows = [Row(0, 0, "store", 1), Row(1, 1, "plain", 1), Row(2, 3, "store", 1), Row(3, 3, "exit")]
        paths = [[0, 1, 3], [0, 1, 3]]
        found = walks.Matcher(rows, [[1], [3], [3], []]).match(paths)
        with self.assertRaisesRegex(walks.WalkError, "stores 2 times for block 3, which is entered 3 times"):
            walks.check_stores(rows, found, [*paths, [3]], {0: 3}, [1, 0, 0, 1])


if __name__ == "__main__":
    unittest.main()
