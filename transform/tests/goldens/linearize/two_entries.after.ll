; linearize taken: f: control flow at ?: 6 unstructured edges: 1 regions with 3 parts behind 2 guards, and 1 at the ends of loops; 0 switches are branches; +3 blocks, +3 comparisons, +3 branches, +3 choices, +7 phis

declare i1 @one(i32)

declare i1 @two(i32)

define i32 @f(i1 %c, i32 %n) {
entry:
  %k = mul i32 %n, 3
  %0 = select i1 %c, i32 1, i32 2
  br label %guard

guard:                                            ; preds = %entry, %back
  %.06 = phi i32 [ undef, %entry ], [ %.28, %back ]
  %.04 = phi i32 [ %k, %entry ], [ %.15, %back ]
  %.02 = phi i32 [ %n, %entry ], [ %.13, %back ]
  %.0 = phi i32 [ %0, %entry ], [ %.2, %back ]
  %1 = icmp eq i32 %.0, 2
  br i1 %1, label %b, label %guard1

b:                                                ; preds = %guard
  %y1 = xor i32 %.04, 5
  %t = call i1 @two(i32 %y1)
  %2 = select i1 %t, i32 1, i32 3
  br label %guard1

guard1:                                           ; preds = %b, %guard
  %.17 = phi i32 [ %y1, %b ], [ %.06, %guard ]
  %.13 = phi i32 [ %y1, %b ], [ %.02, %guard ]
  %.1 = phi i32 [ %2, %b ], [ %.0, %guard ]
  %3 = icmp eq i32 %.1, 1
  br i1 %3, label %a, label %back

a:                                                ; preds = %guard1
  %x1 = add i32 %.13, %k
  %s = call i1 @one(i32 %x1)
  %4 = select i1 %s, i32 2, i32 3
  br label %back

back:                                             ; preds = %a, %guard1
  %.28 = phi i32 [ %x1, %a ], [ %.17, %guard1 ]
  %.15 = phi i32 [ %x1, %a ], [ %.04, %guard1 ]
  %.2 = phi i32 [ %4, %a ], [ %.1, %guard1 ]
  %5 = icmp eq i32 %.2, 2
  br i1 %5, label %guard, label %out

out:                                              ; preds = %back
  ret i32 %.28
}
