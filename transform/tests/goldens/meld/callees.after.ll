; meld taken: saves: subgraphs at ? and ?: blocks, score 48%: 2 pairs, 2 selects, 1 branches; lanes that part need about 122 instructions, melded 66, on a GPU; 75 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 19 are lost, 0 more for each iteration of a loop
; meld taken: saves_little: subgraphs at ? and ?: blocks, score 31%: 2 pairs, 2 selects, 1 branches; lanes that part need about 20 instructions, melded 15, on a GPU; 4 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 19 are lost, 0 more for each iteration of a loop

@out = external global i64

; Function Attrs: noinline
define internal i64 @long(i64 %a, i64 %n) #0 {
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = phi i64 [ %a, %entry ], [ %t, %loop ]
  %m = mul i64 %s, 3
  %t = xor i64 %m, %i
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %end

end:                                              ; preds = %loop
  ret i64 %t
}

; Function Attrs: noinline
define internal i64 @short(i64 %a, i64 %n) #0 {
  ret i64 %a
}

define void @saves(i1 %c, i64 %a, i64 %b, i64 %d, i64 %e) {
entry:
  %0 = select i1 %c, i64 %a, i64 %b
  %1 = select i1 %c, i64 %d, i64 %e
  br label %melded

melded:                                           ; preds = %entry
  %x = call i64 @long(i64 %0, i64 %1)
  br i1 %c, label %join, label %only.else

only.else:                                        ; preds = %melded
  %z = udiv i64 %x, 7
  br label %join

join:                                             ; preds = %melded, %only.else
  %2 = phi i64 [ %x, %melded ], [ %z, %only.else ]
  store i64 %2, ptr @out, align 4
  ret void
}

define void @saves_little(i1 %c, i64 %a, i64 %b, i64 %d, i64 %e) {
entry:
  %0 = select i1 %c, i64 %a, i64 %b
  %1 = select i1 %c, i64 %d, i64 %e
  br label %melded

melded:                                           ; preds = %entry
  %x = call i64 @short(i64 %0, i64 %1)
  br i1 %c, label %join, label %only.else

only.else:                                        ; preds = %melded
  %z = udiv i64 %x, 7
  br label %join

join:                                             ; preds = %melded, %only.else
  %2 = phi i64 [ %x, %melded ], [ %z, %only.else ]
  store i64 %2, ptr @out, align 4
  ret void
}

attributes #0 = { noinline }
