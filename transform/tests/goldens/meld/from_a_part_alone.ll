; A value of a part that only one side has is used in a later part that is melded: there the other side has none.
declare i32 @only(i32) willreturn
define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp sgt i32 %a, %b
  br i1 %c, label %t, label %e
t:
  %t1 = call i32 @only(i32 %a)
  %tz = icmp eq i32 %t1, 0
  br i1 %tz, label %tj, label %t2
t2:
  %tq = udiv i32 %a, %t1
  br label %tj
tj:
  %tv = phi i32 [ %b, %t ], [ %tq, %t2 ]
  %tw = icmp ult i32 %tv, 9
  br i1 %tw, label %tn, label %tm
tn:
  %tn0 = or i32 %tv, 1
  %tn1 = udiv i32 %t1, %tn0
  %tx0 = mul i32 %tn1, 7
  %tx1 = udiv i32 %tx0, 8
  %tx2 = mul i32 %tx1, 9
  %tx3 = udiv i32 %tx2, 10
  %tx4 = mul i32 %tx3, 11
  %tx5 = udiv i32 %tx4, 12
  %tn2 = mul i32 %tx5, %tn1
  br label %tm
tm:
  %to = phi i32 [ %tv, %tj ], [ %tn2, %tn ]
  br label %join
e:
  %ew = icmp ugt i32 9, %b
  br i1 %ew, label %en, label %em
en:
  %en0 = or i32 %b, 1
  %en1 = udiv i32 %a, %en0
  %ex0 = mul i32 %en1, 7
  %ex1 = udiv i32 %ex0, 8
  %ex2 = mul i32 %ex1, 9
  %ex3 = udiv i32 %ex2, 10
  %ex4 = mul i32 %ex3, 11
  %ex5 = udiv i32 %ex4, 12
  %en2 = mul i32 %ex5, %en1
  br label %em
em:
  %eo = phi i32 [ %a, %e ], [ %en2, %en ]
  br label %join
join:
  %r = phi i32 [ %to, %tm ], [ %eo, %em ]
  ret i32 %r
}
