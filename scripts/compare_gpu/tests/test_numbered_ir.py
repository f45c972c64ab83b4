"""Numbers of blocks in textual IR."""

import re
import unittest

import numbered_ir

IR = """\
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define dso_local void @kernel(ptr noundef readonly %in, ptr noundef writeonly %out) local_unnamed_addr #0 !dbg !8 {
entry:
  %0 = tail call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !11
    #dbg_value(i32 %0, !12, !DIExpression(), !13)
  %few = icmp ult i32 %0, 4, !dbg !14
  br label %loop, !dbg !14

loop:                                             ; preds = %loop, %entry
  %n = phi i32 [ 0, %entry ], [ %next, %loop ], !dbg !11
  %next = add i32 %n, 1, !dbg !14
  %more = icmp ult i32 %next, %0, !dbg !11
  %both = select i1 %few, i1 %more, i1 false, !dbg !11
  br i1 %both, label %loop, label %end, !dbg !11, !llvm.loop !20

end:                                              ; preds = %loop
  ret void, !dbg !14
}

declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { nounwind "target-cpu"="sm_90" "target-features"="+ptx80,+sm_90" }
attributes #1 = { nounwind }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!11 = !DILocation(line: 30, column: 3, scope: !8)
!14 = distinct !DILocation(line: 7, column: 3, scope: !8)
"""


class NumberedIrTest(unittest.TestCase):
    def setUp(self):
        self.kernel = numbered_ir.Kernel(IR)

    def test_blocks_have_their_successors_and_lines_of_source(self):
        self.assertEqual([block.name for block in self.kernel.blocks], ["entry", "loop", "end"])
        self.assertEqual([block.successors for block in self.kernel.blocks], [[1], [1, 2], []])
        self.assertEqual([block.lines for block in self.kernel.blocks], [[7, 30], [7, 30], [7]])

    def test_the_only_line_of_an_instruction_is_its_blocks_number_plus_one(self):
        text = self.kernel.with_block_lines("k.c")
        lines = dict(re.findall(r"^!(\d+) = !DILocation\(line: (\d+)", text, flags=re.M))
        of = {
            part: re.search(rf"{re.escape(part)}.*!dbg !(\d+)", text)[1]
            for part in ("%few = icmp", "%next = add", "ret void")
        }
        self.assertEqual([lines[number] for number in of.values()], ["1", "2", "3"])
        self.assertNotRegex(text, r"= phi .*!dbg")
        self.assertNotIn("#dbg_value", text)

    def test_loops_are_not_unrolled_again(self):
        text = self.kernel.with_block_lines("k.c")
        loop = re.search(r"br i1 %both.*!llvm\.loop !(\d+)", text)[1]
        unroll = re.search(rf"^!{loop} = distinct !{{!{loop}, !(\d+)}}", text, flags=re.M)[1]
        self.assertIn(f'!{unroll} = !{{!"llvm.loop.unroll.disable"}}', text)
        self.assertEqual(text.count("!llvm.loop"), 1)

    def test_each_block_is_recorded_behind_its_phis(self):
        text = numbered_ir.with_records(self.kernel)
        self.assertEqual(re.findall(r"@record\(i32 (\d+)\)", text), ["0", "1", "2"])
        self.assertLess(text.index("= phi"), text.index("@record(i32 1)"))

    def test_on_x86_the_lane_is_a_parameter(self):
        text = numbered_ir.for_x86(numbered_ir.with_records(self.kernel))
        self.assertIn("%0 = add i32 %lane.of.thread, 0\n", text)
        self.assertIn("ptr noundef writeonly %out, i32 %lane.of.thread)", text)
        self.assertIn('target triple = "x86_64-unknown-linux-gnu"', text)
        self.assertNotIn("nvvm", text)
        self.assertNotIn("sm_90", text)

    def test_an_intrinsic_of_the_gpu_that_is_left_is_named(self):
        text = IR.replace("ret void", "call void @llvm.nvvm.barrier0()\n  ret void")
        with self.assertRaisesRegex(numbered_ir.IrError, "llvm.nvvm.barrier0"):
            numbered_ir.for_x86(text)

    def test_a_call_that_is_left_is_refused(self):
        with self.assertRaisesRegex(numbered_ir.IrError, "left a call"):
            numbered_ir.Kernel("define void @other() {\nentry:\n  ret void\n}\n" + IR)

    def test_selected_conditions_become_arithmetic(self):
        text = numbered_ir.without_selected_conditions(IR)
        self.assertIn("%both = and i1 %few, %more", text)


if __name__ == "__main__":
    unittest.main()
