; Two turns of an inner loop became one: lanes meet at the first copy of the mark, and are let go behind the outer loop; a mark without its counterpart is refused.

define void @work(i32 %n, ptr %trips) {
entry:
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 1, 8\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 1, 0\0A\09.asciz \22gone\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  br label %outer

outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %at = getelementptr i32, ptr %trips, i32 %i
  %count = load i32, ptr %at
  br label %first

first:
  %j = phi i32 [ 0, %outer ], [ %j.next, %second ]
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 2, 0\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void @expensive(i32 %j)
  %odd = or i32 %j, 1
  %ends = icmp eq i32 %odd, %count
  br i1 %ends, label %epilog, label %second

second:
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 2, 0\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void @expensive(i32 %odd)
  %j.next = add i32 %j, 2
  %more = icmp slt i32 %j.next, %count
  br i1 %more, label %first, label %epilog

epilog:
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer, label %exit

exit:
  ret void
}

declare void @expensive(i32)
