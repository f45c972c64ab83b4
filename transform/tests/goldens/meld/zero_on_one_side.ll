; A block goes through a loop that divides by what is zero for its lanes: the divisions stay under the branch.
define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp eq i32 %a, 0
  br i1 %c, label %e, label %t
t:
  br label %h
h:
  %i = phi i32 [ 0, %t ], [ %i2, %g ]
  %s = phi i32 [ %b, %t ], [ %s5, %g ]
  %q = urem i32 %s, %a
  %z = icmp ugt i32 %q, 2
  br i1 %z, label %y, label %g
y:
  %y1 = mul i32 %q, %b
  %y2 = udiv i32 %y1, %a
  %y0 = or i32 %y1, 1
  %y3 = udiv i32 %y2, %y0
  %y4 = xor i32 %y3, 15
  %y5 = sdiv i32 %y4, 3
  br label %g
g:
  %s5 = phi i32 [ %s, %h ], [ %y5, %y ]
  %i2 = add nuw nsw i32 %i, 1
  %k = icmp ult i32 %i2, 4
  br i1 %k, label %h, label %join
e:
  %w1 = mul i32 %b, %b
  %w0 = or i32 %b, 1
  %w2 = udiv i32 %w1, %w0
  %w5a = or i32 %w1, 1
  %w3 = udiv i32 %w2, %w5a
  %w4 = xor i32 %w3, 31
  %w5 = sdiv i32 %w4, 7
  br label %join
join:
  %r = phi i32 [ %s5, %g ], [ %w5, %e ]
  ret i32 %r
}
