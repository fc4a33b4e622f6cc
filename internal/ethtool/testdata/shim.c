/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before ethtool(8) by shim_test.go: a card made of a file, behind
 * ioctl(SIOCETHTOOL).
 *
 * SHIM_RULES  file of struct ethtool_rxnfc, the rules that the card has;
 *             without it the card takes no rules
 * SHIM_DUMP   file to which each inserted rule is appended
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

enum { RINGS = 32, LOCATIONS = 1024 };

static struct ethtool_rxnfc table[LOCATIONS];
static unsigned int count;

static int load(void)
{
	const char *path = getenv("SHIM_RULES");
	FILE *f = path ? fopen(path, "rb") : NULL;

	if (!f)
		return -EOPNOTSUPP;
	count = fread(table, sizeof(table[0]), LOCATIONS, f);
	fclose(f);
	return 0;
}

static int list(struct ethtool_rxnfc *nfc)
{
	if (nfc->rule_cnt != count)
		return -EINVAL;
	for (unsigned int i = 0; i < count; i++)
		nfc->rule_locs[i] = table[i].fs.location;
	nfc->data = LOCATIONS;
	return 0;
}

static int find(struct ethtool_rxnfc *nfc)
{
	for (unsigned int i = 0; i < count; i++) {
		if (table[i].fs.location == nfc->fs.location) {
			nfc->fs = table[i].fs;
			nfc->rss_context = table[i].rss_context;
			return 0;
		}
	}
	return -ENOENT;
}

static int insert(const struct ethtool_rxnfc *nfc)
{
	const char *path = getenv("SHIM_DUMP");
	FILE *f = path ? fopen(path, "ab") : NULL;

	if (!f)
		return -EOPNOTSUPP;
	fwrite(nfc, sizeof(*nfc), 1, f);
	fclose(f);
	return 0;
}

static int answer(struct ethtool_rxnfc *nfc)
{
	int err;

	switch (nfc->cmd) {
	case ETHTOOL_SRXCLSRLINS:
		return insert(nfc);
	case ETHTOOL_GRXRINGS:
		nfc->data = RINGS;
		return 0;
	case ETHTOOL_GRXCLSRLCNT:
		err = load();
		nfc->rule_cnt = count;
		nfc->data = LOCATIONS;
		return err;
	case ETHTOOL_GRXCLSRLALL:
		err = load();
		return err ? err : list(nfc);
	case ETHTOOL_GRXCLSRULE:
		err = load();
		return err ? err : find(nfc);
	}
	return -EOPNOTSUPP;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;
	int err;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request != SIOCETHTOOL)
		return syscall(SYS_ioctl, fd, request, arg);
	err = answer((void *)((struct ifreq *)arg)->ifr_data);
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

/* Without netlink, ethtool falls back to the ioctl for everything. */
int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return syscall(SYS_socket, domain, type, protocol);
}
