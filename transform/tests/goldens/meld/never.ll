; Volatile and atomic accesses, convergent calls, and loads beside stores are never one.
declare void @barrier() convergent

define void @never(ptr %p, ptr %q, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load volatile i32, ptr %p, align 4
  %a1 = load atomic i32, ptr %p seq_cst, align 4
  store i32 1, ptr %p, align 4
  br label %join

else:
  %b = load volatile i32, ptr %q, align 4
  %b1 = load atomic i32, ptr %q seq_cst, align 4
  %b2 = load i32, ptr %q, align 4
  br label %join

join:
  br i1 %c, label %then2, label %else2

then2:
  call void @barrier()
  store i32 2, ptr %p, align 4
  br label %end

else2:
  call void @barrier()
  store i32 2, ptr %q, align 4
  br label %end

end:
  ret void
}
