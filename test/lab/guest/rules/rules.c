// SPDX-License-Identifier: Apache-2.0
//
// rules LINK insert|delete COUNT: the shortest way to make rules, a loop of the
// ioctl. Rule i is what
//
//   ethtool -N LINK flow-type ip4 l4proto 253 l4data 4096+i m 0xffff0000 action Q loc i
//
// makes, where Q is (i ^ i >> 4 ^ i >> 8) & 15. Prints how many microseconds the loop took.
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

static long microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	int insert = argc == 4 && !strcmp(argv[2], "insert");
	int count = argc == 4 ? atoi(argv[3]) : 0;
	struct ethtool_rxnfc nfc = {
		.cmd = insert ? ETHTOOL_SRXCLSRLINS : ETHTOOL_SRXCLSRLDEL,
		.fs = {
			.flow_type = IPV4_USER_FLOW,
			.h_u.usr_ip4_spec = { .ip_ver = ETH_RX_NFC_IP4, .proto = 253 },
			.m_u.usr_ip4_spec = { .proto = 0xff, .l4_4_bytes = htonl(0xffff) },
		},
	};
	struct ifreq request = { .ifr_data = (void *)&nfc };
	long start;
	int fd;

	if (!insert && (argc != 4 || strcmp(argv[2], "delete"))) {
		fprintf(stderr, "usage: rules LINK insert|delete COUNT\n");
		return 2;
	}
	strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	start = microseconds();
	for (int i = 0; i < count; i++) {
		nfc.fs.location = i;
		if (insert) {
			nfc.fs.h_u.usr_ip4_spec.l4_4_bytes = htonl(4096 + i);
			nfc.fs.ring_cookie = (i ^ i >> 4 ^ i >> 8) & 15;
		}
		if (ioctl(fd, SIOCETHTOOL, &request)) {
			perror(argv[2]);
			return 1;
		}
	}
	printf("%ld\n", microseconds() - start);
	return 0;
}
