; split-nodes taken: f: control flow: 1 copies forward, 1 backward, 1 loops cut; 4 blocks became 15, 9 instructions 28

declare i1 @one(i32)

declare i1 @two(i32)

define i32 @f(i1 %c, i32 %n) {
entry:
  %k = mul i32 %n, 3
  br i1 %c, label %a.copy, label %b

a:                                                ; preds = %b
  %x1 = add i32 %y1, %k
  %s = call i1 @one(i32 %x1)
  br i1 %s, label %leads, label %leads1

b:                                                ; preds = %cut, %entry
  %.06 = phi i32 [ %k, %entry ], [ %.17, %cut ]
  %y1 = xor i32 %.06, 5
  %t = call i1 @two(i32 %y1)
  br i1 %t, label %a, label %leads2

out:                                              ; preds = %cut.copy, %cut, %a.copy
  %.04 = phi i32 [ %.2, %cut.copy ], [ %0, %a.copy ], [ %.15, %cut ]
  ret i32 %.04

a.copy:                                           ; preds = %entry
  %0 = add i32 %n, %k
  %1 = call i1 @one(i32 %0)
  br i1 %1, label %b.copy, label %out

cut:                                              ; preds = %leads2, %leads1, %leads
  %.17 = phi i32 [ %x1, %leads ], [ %x1, %leads1 ], [ %.06, %leads2 ]
  %.15 = phi i32 [ %x1, %leads ], [ %x1, %leads1 ], [ %y1, %leads2 ]
  %.0 = phi i32 [ 0, %leads ], [ 1, %leads1 ], [ 1, %leads2 ]
  %2 = icmp eq i32 %.0, 0
  br i1 %2, label %b, label %out

leads:                                            ; preds = %a
  br label %cut

leads1:                                           ; preds = %a
  br label %cut

leads2:                                           ; preds = %b
  br label %cut

a.copy3:                                          ; preds = %b.copy
  %3 = add i32 %5, %k
  %4 = call i1 @one(i32 %3)
  br i1 %4, label %leads.copy, label %leads1.copy

b.copy:                                           ; preds = %a.copy, %cut.copy
  %.28 = phi i32 [ %0, %a.copy ], [ %.3, %cut.copy ]
  %5 = xor i32 %.28, 5
  %6 = call i1 @two(i32 %5)
  br i1 %6, label %a.copy3, label %leads2.copy

cut.copy:                                         ; preds = %leads2.copy, %leads1.copy, %leads.copy
  %.3 = phi i32 [ %3, %leads.copy ], [ %3, %leads1.copy ], [ %.28, %leads2.copy ]
  %.2 = phi i32 [ %3, %leads.copy ], [ %3, %leads1.copy ], [ %5, %leads2.copy ]
  %.1 = phi i32 [ 0, %leads.copy ], [ 1, %leads1.copy ], [ 1, %leads2.copy ]
  %7 = icmp eq i32 %.1, 0
  br i1 %7, label %b.copy, label %out

leads.copy:                                       ; preds = %a.copy3
  br label %cut.copy

leads1.copy:                                      ; preds = %a.copy3
  br label %cut.copy

leads2.copy:                                      ; preds = %b.copy
  br label %cut.copy
}
