; Lanes that come to a critical section by two ways must not run it together: one has the lock, and waits for the others.
; A loop that goes on where another lane was faster waits for nobody.
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @f(i32)
declare void @note(i32)
@m = global i32 0
@flag = global i32 0

define void @section(i1 %a, i1 %b) {
  br i1 %a, label %X, label %B

B:
  br i1 %b, label %X, label %Y

X:
  %1 = call i32 @pthread_mutex_lock(ptr @m)
  call void @note(i32 1)
  %2 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %Y

Y:
  ret void
}

define void @counts(i1 %a, i1 %b) {
  br i1 %a, label %X, label %B

B:
  br i1 %b, label %X, label %Y

X:
  %was = load atomic i32, ptr @flag acquire, align 4
  call void @note(i32 %was)
  br label %again

again:
  %old = phi i32 [ %was, %X ], [ %found, %again ]
  %new = mul i32 %old, 3
  %pair = cmpxchg ptr @flag, i32 %old, i32 %new monotonic monotonic
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %Y, label %again

Y:
  ret void
}
