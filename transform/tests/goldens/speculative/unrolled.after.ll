; speculative left: work: gone at ?: refused: the function has no LOCKSTEP_RECONVERGE of this name, or the compiler removed it; put both into one function
; speculative left: work: inner at ?: the compiler copied the place; lanes that met here reach 1 copies after it together, and 0 past it, where no lane is collected
; speculative left: work: inner at ?: b0: join; instructions 1 to 3
; speculative left: work: inner at ?: b0: wait, rejoin (8 lanes); instructions 8 to 10
; speculative left: work: inner at ?: b0: gives way; instructions 11 to 13
; speculative left: work: inner at ?: b0: gives way; instructions 16 to 18
; speculative left: work: inner at ?: b0: cancel; instructions 22 to 22
; speculative left: work: inner at ?: b0: meet behind; instructions 22 to 22

define void @work(i32 %n, ptr %trips) {
entry:
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 1, 8\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 1, 0\0A\09.asciz \22gone\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  br label %outer

outer:                                            ; preds = %epilog, %entry
  %i = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %at = getelementptr i32, ptr %trips, i32 %i
  %count = load i32, ptr %at, align 4
  br label %first

first:                                            ; preds = %second, %outer
  %j = phi i32 [ 0, %outer ], [ %j.next, %second ]
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 2, 0\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void @expensive(i32 %j)
  %odd = or i32 %j, 1
  %ends = icmp eq i32 %odd, %count
  br i1 %ends, label %epilog, label %second

second:                                           ; preds = %first
  call void asm sideeffect "7654:\0A\09.pushsection .lockstep.marks, \22?\22, @progbits\0A\09.quad 7654b\0A\09.long 2, 0\0A\09.asciz \22inner\22\0A\09.popsection", "~{dirflag},~{fpsr},~{flags}"()
  call void @expensive(i32 %odd)
  %j.next = add i32 %j, 2
  %more = icmp slt i32 %j.next, %count
  br i1 %more, label %first, label %epilog

epilog:                                           ; preds = %second, %first
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer, label %exit

exit:                                             ; preds = %epilog
  ret void
}

declare void @expensive(i32)
