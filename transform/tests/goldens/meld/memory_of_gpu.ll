; Of a GPU's code: two arrays in global memory take as many stores as before, which take longest, so nothing is gained; in shared memory the same saves time, and so does one array for both sides.
target triple = "nvptx64-nvidia-cuda"

@ours = internal addrspace(3) global [256 x i32] undef
@theirs = internal addrspace(3) global [256 x i32] undef

define void @two_arrays(ptr %p, ptr %q, i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr %p, i64 %i
  %b = getelementptr inbounds i32, ptr %q, i64 %i
  %c = icmp sgt i32 %t, 7
  br i1 %c, label %then, label %else

then:
  %then.x = load i32, ptr %a
  %then.a = mul i32 %then.x, 5
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %a
  br label %join

else:
  %else.x = load i32, ptr %b
  %else.a = mul i32 %else.x, 5
  %else.b = xor i32 %else.a, 77
  %else.c = add i32 %else.b, %else.x
  %else.d = lshr i32 %else.c, 3
  %else.e = mul i32 %else.d, %else.b
  store i32 %else.e, ptr %b
  br label %join

join:
  ret void
}

define void @shared(i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr addrspacecast (ptr addrspace(3) @ours to ptr), i64 %i
  %b = getelementptr inbounds i32, ptr addrspacecast (ptr addrspace(3) @theirs to ptr), i64 %i
  %c = icmp sgt i32 %t, 7
  br i1 %c, label %then, label %else

then:
  %then.x = load i32, ptr %a
  %then.a = mul i32 %then.x, 5
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %a
  br label %join

else:
  %else.x = load i32, ptr %b
  %else.a = mul i32 %else.x, 5
  %else.b = xor i32 %else.a, 77
  %else.c = add i32 %else.b, %else.x
  %else.d = lshr i32 %else.c, 3
  %else.e = mul i32 %else.d, %else.b
  store i32 %else.e, ptr %b
  br label %join

join:
  ret void
}

define void @one_array(ptr %p, ptr %q, i32 %t) {
entry:
  %i = zext i32 %t to i64
  %a = getelementptr inbounds i32, ptr %p, i64 %i
  %b = getelementptr inbounds i32, ptr %q, i64 %i
  %c = icmp sgt i32 %t, 7
  br i1 %c, label %then, label %else

then:
  %then.x = load i32, ptr %a
  %then.a = mul i32 %then.x, 9
  %then.b = xor i32 %then.a, 77
  %then.c = add i32 %then.b, %then.x
  %then.d = lshr i32 %then.c, 3
  %then.e = mul i32 %then.d, %then.b
  store i32 %then.e, ptr %a
  br label %join

else:
  %else.x = load i32, ptr %a
  %else.a = mul i32 %else.x, 5
  %else.b = xor i32 %else.a, 77
  %else.c = add i32 %else.b, %else.x
  %else.d = lshr i32 %else.c, 3
  %else.e = mul i32 %else.d, %else.b
  store i32 %else.e, ptr %a
  br label %join

join:
  ret void
}
