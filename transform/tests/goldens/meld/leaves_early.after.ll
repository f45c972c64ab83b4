; meld taken: early: subgraphs at ? and ?: blocks, score 50%: 4 pairs, 1 selects, 0 branches; lanes that part need about 63 instructions, melded 37, on a GPU; 2 accesses go to two places, as many transactions as before; 21 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop
; meld left: early: subgraphs at ? and ?: lanes leave a part of an arm early, to a block that other code leads to as well
; meld left: little: subgraphs at ? and ?: lanes leave a part of an arm early, to a block that other code leads to as well

define i32 @early(ptr %in, ptr %out, i32 %x, i1 %c, i1 %d) {
entry:
  br i1 %d, label %head, label %shared

head:                                             ; preds = %entry
  %0 = select i1 %c, ptr %in, ptr %out
  br label %left

then:                                             ; preds = %left
  %stop = icmp eq i32 %a2, 7
  br i1 %stop, label %shared, label %rest

rest:                                             ; preds = %then
  %a3 = xor i32 %a2, %x
  store i32 %a3, ptr %in, align 4
  br label %join

left:                                             ; preds = %head
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, %x
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %0, align 4
  br i1 %c, label %then, label %apart1

apart1:                                           ; preds = %left
  br label %join

join:                                             ; preds = %apart1, %rest
  %1 = phi i32 [ %a3, %rest ], [ %a2, %apart1 ]
  %r2 = mul i32 %1, %1
  ret i32 %r2

shared:                                           ; preds = %then, %entry
  %s = phi i32 [ 0, %entry ], [ %a1, %then ]
  ret i32 %s
}

define i32 @little(ptr %in, ptr %out, i32 %x, i1 %c, i1 %d) {
entry:
  br i1 %d, label %head, label %shared

head:                                             ; preds = %entry
  br i1 %c, label %then, label %else

then:                                             ; preds = %head
  %a = mul i32 %x, %x
  store i32 %a, ptr %in, align 4
  %stop = icmp eq i32 %a, 7
  br i1 %stop, label %shared, label %join

else:                                             ; preds = %head
  %b = sdiv i32 %x, 5
  store i32 %b, ptr %out, align 4
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %a, %then ], [ %b, %else ]
  ret i32 %r

shared:                                           ; preds = %then, %entry
  %s = phi i32 [ 0, %entry ], [ %a, %then ]
  ret i32 %s
}
