; Lanes of an AMD GPU wait at the body of an inner loop, where 8 are enough: those that leave it stop behind it, and are refilled together.
target triple = "amdgcn-amd-amdhsa"
define void @work(i32 %n, ptr %trips, ptr %out) {
entry:
  call void asm sideeffect "// .lockstep.marks 1, 8, inner", ""()
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %acc = phi i32 [ 0, %entry ], [ %acc2, %epilog ]
  %at = getelementptr i32, ptr %trips, i32 %i
  %count = load i32, ptr %at, align 4
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %first, label %epilog
first:
  %j = phi i32 [ 0, %outer ], [ %j.next, %first ]
  %s = phi i32 [ %acc, %outer ], [ %s2, %first ]
  call void asm sideeffect "// .lockstep.marks 2, 0, inner", ""()
  %m = mul i32 %s, %j
  %s2 = add i32 %m, %count
  %j.next = add i32 %j, 1
  %more = icmp slt i32 %j.next, %count
  br i1 %more, label %first, label %epilog
epilog:
  %acc2 = phi i32 [ %s2, %first ], [ %acc, %outer ]
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer, label %exit
exit:
  store i32 %acc2, ptr %out
  ret void
}
