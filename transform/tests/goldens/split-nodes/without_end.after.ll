; split-nodes taken: never: control flow: 0 copies forward, 1 backward, 0 loops cut; 3 blocks became 4, 5 instructions 7
; split-nodes taken: trap: control flow: 0 copies forward, 0 backward, 1 loops cut; 5 blocks became 11, 8 instructions 16

declare i1 @one()

declare void @stop()

define void @never(i1 %c) {
entry:
  br i1 %c, label %a.copy, label %b

a:                                                ; preds = %b, %a
  %s = call i1 @one()
  br i1 %s, label %b, label %a

b:                                                ; preds = %a.copy, %b, %a, %entry
  %t = call i1 @one()
  br i1 %t, label %a, label %b

a.copy:                                           ; preds = %entry, %a.copy
  %0 = call i1 @one()
  br i1 %0, label %b, label %a.copy
}

define void @trap(i1 %c) {
entry:
  br label %head

head:                                             ; preds = %cut, %entry
  %s = call i1 @one()
  br i1 %s, label %leads, label %goes

fails:                                            ; preds = %out3
  call void @stop()
  br label %end

goes:                                             ; preds = %head
  %t = call i1 @one()
  br i1 %t, label %leads1, label %leads2

out:                                              ; preds = %out3
  br label %end

end:                                              ; preds = %out, %fails
  ret void

cut:                                              ; preds = %leads2, %leads1, %leads
  %.0 = phi i32 [ 1, %leads ], [ 0, %leads1 ], [ 2, %leads2 ]
  %0 = icmp eq i32 %.0, 0
  br i1 %0, label %head, label %out3

leads:                                            ; preds = %head
  br label %cut

leads1:                                           ; preds = %goes
  br label %cut

leads2:                                           ; preds = %goes
  br label %cut

out3:                                             ; preds = %cut
  %1 = icmp eq i32 %.0, 1
  br i1 %1, label %fails, label %out
}
