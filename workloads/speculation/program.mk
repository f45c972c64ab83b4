# Builds the program of a folder of this one: its Makefile says only `include ../program.mk`.
# Where make's own default stands, the compiler is gcc; CC and CFLAGS of the command line or the environment win.
ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS ?= -O2 -g

PROGRAM = $(basename $(wildcard *.c))

# Square roots are one instruction, as on a GPU: nobody reads errno.
$(PROGRAM): $(PROGRAM).c $(wildcard ../../include/*.h) ../../../include/lockstep.h Makefile ../program.mk
	$(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) -fno-math-errno -pthread -I../../include -I../../../include -o $@ $< $(LDFLAGS) -lm

clean:
	rm -f $(PROGRAM)

.PHONY: clean
