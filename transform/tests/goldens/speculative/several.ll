; Lanes join for two places at once, each in a loop of its own: they wait at either, in turns of one region.
target triple = "nvptx64-nvidia-cuda"

define void @work(ptr %a, ptr %b) {
entry:
  call void asm sideeffect "// .lockstep.marks 1, 0, one", ""()
  call void asm sideeffect "// .lockstep.marks 1, 0, other", ""()
  br label %first

first:
  call void asm sideeffect "// .lockstep.marks 2, 0, one", ""()
  %x = load i32, ptr %a
  %more = icmp sgt i32 %x, 0
  br i1 %more, label %first, label %second

second:
  call void asm sideeffect "// .lockstep.marks 2, 0, other", ""()
  %y = load i32, ptr %b
  %again = icmp sgt i32 %y, %x
  br i1 %again, label %second, label %exit

exit:
  ret void
}
