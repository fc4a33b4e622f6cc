/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tests are functions with a sentence for a name. */

#ifndef HARNESS_H
#define HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
	const char *name;
	void (*run)(void);
};

extern int checks_failed;

#define CHECK(cond)								\
	do {									\
		if (!(cond)) {							\
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);	\
			checks_failed++;					\
		}								\
	} while (0)

#define CHECK_EQ(got, want)							\
	do {									\
		long long got_ = (got), want_ = (want);				\
		if (got_ != want_) {						\
			printf("# %s:%d: %s is %lld (0x%llx), not %lld (0x%llx)\n", \
			       __FILE__, __LINE__, #got, got_, got_, want_, want_); \
			checks_failed++;					\
		}								\
	} while (0)

#define CHECK_LOG(text)								\
	do {									\
		if (!strstr(fake_log_last(), text)) {				\
			printf("# %s:%d: the log says \"%s\", not \"%s\"\n",	\
			       __FILE__, __LINE__, fake_log_last(), text);	\
			checks_failed++;					\
		}								\
	} while (0)

/* Runs all tests, each between before() and after(). The exit code is 1 if one failed. */
static inline int run_tests(const struct test *tests, int n, void (*before)(void),
			    void (*after)(void))
{
	int failed = 0;

	for (int i = 0; i < n; i++) {
		checks_failed = 0;
		before();
		tests[i].run();
		after();
		printf("%s %d - %s\n", checks_failed ? "not ok" : "ok", i + 1, tests[i].name);
		failed += !!checks_failed;
	}
	printf("%d passed, %d failed\n", n - failed, failed);
	return failed ? 1 : 0;
}

#endif /* HARNESS_H */
