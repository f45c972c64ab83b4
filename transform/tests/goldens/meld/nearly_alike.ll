; An if without an else has the shape of one with an else once its edge to the join gets an empty block.
define i32 @nearly(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %in, align 4
  %a1 = mul i32 %a, %x
  %hit = icmp sgt i32 %a1, 9
  br i1 %hit, label %yes, label %no

yes:
  %a2 = mul i32 %a1, %a1
  store i32 %a2, ptr %in, align 4
  br label %join

no:
  %a3 = sdiv i32 %a1, %x
  br label %join

else:
  %b = load i32, ptr %out, align 4
  %b1 = mul i32 %b, %x
  %hit2 = icmp sgt i32 %b1, 9
  br i1 %hit2, label %yes2, label %join

yes2:
  %b2 = mul i32 %b1, %b1
  store i32 %b2, ptr %out, align 4
  br label %join

join:
  %r = phi i32 [ %a2, %yes ], [ %a3, %no ], [ %b2, %yes2 ], [ %b1, %else ]
  ret i32 %r
}
