; Volatile stores and operands that differ are left, however alike they look.
define void @ends(i1 %c, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else
then:
  store i32 1, ptr %p
  store volatile i32 1, ptr %q
  br label %join
else:
  store i32 2, ptr %p
  store volatile i32 1, ptr %q
  br label %join
join:
  ret void
}
