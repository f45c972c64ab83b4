; meld taken: kind: subgraphs at ? and ?: blocks, score 50%: 4 pairs, 1 selects, 1 branches; lanes that part need about 24 instructions, melded 17, on a GPU; 11 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 16 are lost, 0 more for each iteration of a loop

@one = external constant ptr
@other = external constant ptr

; Function Attrs: nounwind memory(none)
declare i32 @llvm.eh.typeid.for.p0(ptr) #0

define i32 @kind(i1 %c, i32 %by, ptr %to) {
entry:
  %0 = select i1 %c, i32 77, i32 99
  br label %melded

melded:                                           ; preds = %entry
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %melded
  %t = call i32 @llvm.eh.typeid.for.p0(ptr @one)
  br label %join

only.else:                                        ; preds = %melded
  %u = call i32 @llvm.eh.typeid.for.p0(ptr @other)
  br label %join

join:                                             ; preds = %only.else, %only.then
  %1 = phi i32 [ %t, %only.then ], [ %u, %only.else ]
  %x = mul i32 %1, %by
  %x1 = udiv i32 %x, 7
  %x2 = xor i32 %x1, %0
  store i32 %x2, ptr %to, align 4
  ret i32 %x2
}

attributes #0 = { nounwind memory(none) }
