"""The replay under convergence barriers, on code small enough to work out by hand."""

import unittest

from listing import Row
from reference import Replay, ReplayError


def rows(*described):
    """Rows at addresses 0, 1, 2, ...; the block of each is its address."""
    return [Row(at, at, *row) for at, row in enumerate(described)]


def counts(code, outcomes):
    return Replay(code, outcomes).run()


class ReferenceTest(unittest.TestCase):
    def test_lanes_that_part_at_a_branch_meet_at_the_end_of_its_region(self):
        code = rows(
            ("bssy", 1, "", 0, 5),
            ("bra", 1, "P0", -1, 4),
            ("plain", 3),
            ("bra", 1, "", -1, 4),
            ("bsync", 1, "", 0),
            ("plain", 10),
            ("exit",),
        )
        # Lane 0 takes the branch over 3 instructions and a jump: the warp runs 2 + 4 + 2 (BSYNC, for each alone) + 11.
        found = counts(code, [[True], [False]])
        self.assertEqual(found.warp, 2 + 4 + 2 + 11)
        self.assertEqual(found.thread, 2 * 2 + 4 + 2 + 2 * 11)
        self.assertEqual(found.joins, {1: {5: 1}})

    def test_without_a_region_lanes_that_part_run_apart_to_the_end(self):
        code = rows(("bra", 1, "P0", -1, 2), ("plain", 3), ("plain", 10), ("exit",))
        found = counts(code, [[True], [False]])
        self.assertEqual(found.warp, 1 + 3 + 2 * 11)
        self.assertEqual(found.joins, {0: {None: 1}})

    def test_a_lane_that_breaks_is_not_waited_for(self):
        # A loop in a region; lane 0 leaves the region with a BREAK and skips what stands behind it.
        code = rows(
            ("bssy", 1, "", 0, 6),
            ("break", 1, "P1", 0),
            ("bra", 1, "P1", -1, 7),
            ("plain", 2),
            ("bra", 1, "P0", -1, 3),
            ("bsync", 1, "", 0),
            ("plain", 5),
            ("exit",),
        )
        found = counts(code, [[True, True], [False, False, True, False], [False, False, False]])
        # Three lanes run 3; lane 0 exits; two run 3, lane 1 again alone; two BSYNCs; together 5 and an exit, and
        # lane 0's.
        self.assertEqual(found.warp, 3 + 1 + 3 + 3 + 2 + 6)
        self.assertEqual(found.thread, 3 * 3 + 1 + 2 * 3 + 3 + 2 + 2 * 6)

    def test_a_lane_that_exits_is_not_waited_for(self):
        code = rows(("bssy", 1, "", 0, 3), ("exit", 1, "P0"), ("bsync", 1, "", 0), ("plain", 4), ("exit",))
        found = counts(code, [[True], [False], [False]])
        self.assertEqual((found.warp, found.thread), (2 + 1 + 5, 2 * 3 + 2 + 2 * 5))

    def test_the_last_lane_to_break_lets_the_others_go_on(self):
        # Lane 1 waits at the BSYNC (address 3, run first) when lane 0 breaks at address 5.
        code = rows(
            ("bssy", 1, "", 0, 4),
            ("bra", 1, "P0", -1, 5),
            ("plain", 1),
            ("bsync", 1, "", 0),
            ("exit",),
            ("break", 1, "", 0),
            ("exit",),
        )
        found = counts(code, [[True], [False]])
        self.assertEqual((found.warp, found.thread), (2 + 2 + 1 + 2, 4 + 2 + 1 + 2))

    def test_a_loop_runs_as_often_as_its_longest_lane(self):
        code = rows(("bssy", 1, "", 0, 4), ("plain", 9), ("bra", 1, "P0", -1, 1), ("bsync", 1, "", 0), ("exit",))
        found = counts(code, [[True] * turns + [False] for turns in (0, 1, 4)])
        # Five turns of ten; three lanes reach the BSYNC apart.
        self.assertEqual(found.warp, 1 + 50 + 3 + 1)
        self.assertEqual(found.thread, 3 + 10 * (1 + 2 + 5) + 3 + 3)

    def test_inner_regions_end_before_outer_ones(self):
        code = rows(
            ("bssy", 1, "", 0, 9),
            ("bra", 1, "P0", -1, 8),
            ("bssy", 1, "", 1, 6),
            ("bra", 1, "P1", -1, 5),
            ("plain", 1),
            ("bsync", 1, "", 1),
            ("plain", 20),
            ("bra", 1, "", -1, 8),
            ("bsync", 1, "", 0),
            ("exit",),
        )
        found = counts(code, [[True], [False, True], [False, False]])
        self.assertEqual(found.groups[6], 1)
        self.assertEqual(found.threads[6], 2)
        self.assertEqual(found.joins, {1: {9: 1}, 3: {6: 1}})

    def test_all_lanes_meet_at_a_warpsync(self):
        code = rows(("bra", 1, "P0", -1, 2), ("plain", 3), ("warpsync",), ("plain", 10), ("exit",))
        found = counts(code, [[True], [False]])
        self.assertEqual(found.groups[3], 1)

    def test_lanes_that_wait_for_ever_are_an_error(self):
        # Lane 0 waits in its region for lane 1, and lane 1 at the WARPSYNC for lane 0.
        code = rows(
            ("bssy", 1, "", 0, 3), ("bra", 1, "P0", -1, 4), ("bsync", 1, "", 0), ("exit",), ("warpsync",), ("exit",)
        )
        with self.assertRaisesRegex(ReplayError, "2 lanes wait for ever"):
            counts(code, [[False], [True]])

    def test_groups_that_are_ready_at_one_address_run_it_together_once_they_have_stood_there(self):
        def chain(arm):
            return rows(
                ("bssy", 1, "", 0, 6),
                ("bra", 1, "P0", -1, 5),
                ("plain", arm),
                ("bra", 1, "P1", -1, 5),
                ("plain", arm),
                ("bsync", 1, "", 0),
                ("plain", 4),
                ("exit",),
            )

        # Five lanes jump and three go on, then two of these jump and one goes on: to BSYNC by itself. The seven are
        # ready there, in two groups, of which the later has stood there for an arm.
        lanes = [[True]] * 5 + [[False, True]] * 2 + [[False, False]]
        self.assertEqual(counts(chain(7), lanes).groups[5], 2)
        self.assertEqual(counts(chain(2), lanes).groups[5], 3)
        self.assertEqual(counts(chain(2), lanes).warp, 2 + 2 + 1 + 2 + 3 + 5)
        # Where two jump and six go on, the two come to BSYNC first; of the six, four jump, and are alone there.
        lanes = [[True]] * 2 + [[False, True]] * 4 + [[False, False]] * 2
        self.assertEqual(counts(chain(7), lanes).groups[5], 3)

    def test_the_order_of_lanes_changes_no_count(self):
        code = rows(
            ("bssy", 1, "", 0, 5),
            ("bra", 1, "P0", -1, 4),
            ("plain", 3),
            ("bra", 1, "P1", -1, 2),
            ("bsync", 1, "", 0),
            ("exit",),
        )
        lanes = [[True], [False, False], [False, True, True, False], [False, True, False]]
        forward, backward = counts(code, lanes), counts(code, lanes[::-1])
        self.assertEqual((forward.warp, forward.thread), (backward.warp, backward.thread))


if __name__ == "__main__":
    unittest.main()
