; The end of a subgraph leads back into its entry: the way back goes by the front of the melded block too.
define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp slt i32 %a, %b
  br i1 %c, label %t, label %e
t:
  %i = phi i32 [ 0, %entry ], [ %i2, %tx ]
  %s = phi i32 [ %a, %entry ], [ %s4, %tx ]
  %s1 = mul i32 %s, 77
  %d1 = or i32 %i, 3
  %s2 = udiv i32 %s1, %d1
  %s3 = xor i32 %s2, %b
  br label %tx
tx:
  %s4 = add i32 %s3, %i
  %i2 = add i32 %i, 1
  %k = icmp ult i32 %i2, 5
  br i1 %k, label %t, label %join
e:
  %u1 = mul i32 %b, 99
  %dd = or i32 %a, 5
  %u2 = udiv i32 %u1, %dd
  %u3 = xor i32 %u2, %a
  br label %join
join:
  %r = phi i32 [ %s4, %tx ], [ %u3, %e ]
  ret i32 %r
}
