; meld left: two_arrays: subgraphs at ? and ?: no profit: blocks, score 50%: 7 pairs, 1 selects, 0 branches; lanes that part need about 19 instructions, melded 9, on a GPU, where memory takes longer: in time 0 are gained; 2 accesses go to two places, as many transactions as before; 17 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 12 are lost, 0 more for each iteration of a loop
; meld taken: shared: subgraphs at ? and ?: blocks, score 50%: 7 pairs, 1 selects, 0 branches; lanes that part need about 19 instructions, melded 9, on a GPU; 17 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 12 are lost, 0 more for each iteration of a loop
; meld taken: one_array: subgraphs at ? and ?: blocks, score 50%: 7 pairs, 1 selects, 0 branches; lanes that part need about 19 instructions, melded 8, on a GPU; 17 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop
target triple = "nvptx64-nvidia-cuda"

@ours = internal addrspace(3) global [256 x i32] undef
@theirs = internal addrspace(3) global [256 x i32] undef

define void @two_arrays(ptr %p, ptr %q, i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr %p, i64 %i
  %b = getelementptr inbounds i32, ptr %q, i64 %i
  %c = icmp sgt i32 %t, 7
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %then.x = load i32, ptr %a, align 4
  %then.a = mul i32 %then.x, 5
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %a, align 4
  br label %join

else:                                             ; preds = %entry
  %else.x = load i32, ptr %b, align 4
  %else.a = mul i32 %else.x, 5
  %else.b = xor i32 %else.a, 77
  %else.c = add i32 %else.b, %else.x
  %else.d = lshr i32 %else.c, 3
  %else.e = mul i32 %else.d, %else.b
  store i32 %else.e, ptr %b, align 4
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

define void @shared(i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr addrspacecast (ptr addrspace(3) @ours to ptr), i64 %i
  %b = getelementptr inbounds i32, ptr addrspacecast (ptr addrspace(3) @theirs to ptr), i64 %i
  %c = icmp sgt i32 %t, 7
  %0 = select i1 %c, ptr %a, ptr %b
  br label %join

join:                                             ; preds = %entry
  %then.x = load i32, ptr %0, align 4
  %then.a = mul i32 %then.x, 5
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %0, align 4
  ret void
}

define void @one_array(ptr %p, ptr %q, i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr %p, i64 %i
  %b = getelementptr inbounds i32, ptr %q, i64 %i
  %c = icmp sgt i32 %t, 7
  %0 = select i1 %c, i32 9, i32 5
  br label %join

join:                                             ; preds = %entry
  %then.x = load i32, ptr %a, align 4
  %then.a = mul i32 %then.x, %0
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %a, align 4
  ret void
}
