; linearize left: section: control flow at ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; linearize taken: counts: control flow at ?: 1 unstructured edges: 1 regions with 3 parts behind 2 guards, and 0 at the ends of loops; 0 switches are branches; +1 blocks, +1 comparisons, +1 branches, +1 choices, +1 phis

@m = global i32 0
@flag = global i32 0

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @f(i32)

declare void @note(i32)

define void @section(i1 %a, i1 %b) {
  br i1 %a, label %X, label %B

B:                                                ; preds = %0
  br i1 %b, label %X, label %Y

X:                                                ; preds = %B, %0
  %1 = call i32 @pthread_mutex_lock(ptr @m)
  call void @note(i32 1)
  %2 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %Y

Y:                                                ; preds = %X, %B
  ret void
}

define void @counts(i1 %a, i1 %b) {
  br i1 %a, label %guard, label %B

B:                                                ; preds = %0
  %1 = select i1 %b, i32 2, i32 3
  br label %guard

guard:                                            ; preds = %B, %0
  %.0 = phi i32 [ 2, %0 ], [ %1, %B ]
  %2 = icmp eq i32 %.0, 2
  br i1 %2, label %X, label %Y

X:                                                ; preds = %guard
  %was = load atomic i32, ptr @flag acquire, align 4
  call void @note(i32 %was)
  br label %again

again:                                            ; preds = %again, %X
  %old = phi i32 [ %was, %X ], [ %found, %again ]
  %new = mul i32 %old, 3
  %pair = cmpxchg ptr @flag, i32 %old, i32 %new monotonic monotonic, align 4
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %Y, label %again

Y:                                                ; preds = %again, %guard
  ret void
}
