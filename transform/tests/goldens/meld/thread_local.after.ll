; meld taken: count: subgraphs at ? and ?: blocks, score 50%: 5 pairs, 1 selects, 1 branches; lanes that part need about 54 instructions, melded 32, on a GPU; 2 accesses go to two places, as many transactions as before; 23 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 17 are lost, 0 more for each iteration of a loop

@one = thread_local global i32 0
@other = thread_local global i32 0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull) #0

define i32 @count(i1 %c, i32 %by) {
entry:
  %0 = select i1 %c, i32 77, i32 99
  br label %melded

melded:                                           ; preds = %entry
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %melded
  %p = call ptr @llvm.threadlocal.address.p0(ptr @one)
  br label %join

only.else:                                        ; preds = %melded
  %q = call ptr @llvm.threadlocal.address.p0(ptr @other)
  br label %join

join:                                             ; preds = %only.else, %only.then
  %1 = phi ptr [ %p, %only.then ], [ %q, %only.else ]
  %x = load i32, ptr %1, align 4
  %x1 = udiv i32 %by, %x
  %x2 = mul i32 %x1, %by
  %x3 = xor i32 %x2, %0
  store i32 %x3, ptr %1, align 4
  ret i32 %x3
}

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
