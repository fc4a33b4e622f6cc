/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What struct ethtool_rxnfc is, said by the system's own header: sizes and
 * offsets, then rules filled in by hand. golden_test.go compares each line.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <linux/if_ether.h>
#include <linux/ethtool.h>

static struct ethtool_rxnfc nfc;
static struct ethtool_rx_flow_spec *const fs = &nfc.fs;

static void begin(__u32 flow_type, __u64 cookie, __u32 location)
{
	memset(&nfc, 0, sizeof(nfc));
	fs->flow_type = flow_type;
	fs->ring_cookie = cookie;
	fs->location = location;
}

static void end(const char *name)
{
	const unsigned char *b = (const unsigned char *)&nfc;

	printf("rule %s ", name);
	for (size_t i = 0; i < sizeof(nfc); i++)
		printf("%02x", b[i]);
	printf("\n");
}

static void ports4(struct ethtool_tcpip4_spec *h, struct ethtool_tcpip4_spec *m)
{
	h->ip4src = inet_addr("192.0.2.0");
	m->ip4src = inet_addr("255.255.255.0");
	h->ip4dst = inet_addr("198.51.100.7");
	m->ip4dst = inet_addr("255.255.255.255");
	h->psrc = htons(0x1230);
	m->psrc = htons(0xfff0);
	h->pdst = htons(53);
	m->pdst = htons(0xffff);
	h->tos = 0xb8;
	m->tos = 0xfc;
}

static void ports6(struct ethtool_tcpip6_spec *h, struct ethtool_tcpip6_spec *m)
{
	inet_pton(AF_INET6, "2001:db8::", h->ip6src);
	inet_pton(AF_INET6, "ffff:ffff::", m->ip6src);
	inet_pton(AF_INET6, "2001:db8::7", h->ip6dst);
	inet_pton(AF_INET6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", m->ip6dst);
	h->psrc = htons(0x1230);
	m->psrc = htons(0xfff0);
	h->pdst = htons(53);
	m->pdst = htons(0xffff);
	h->tclass = 0xb8;
	m->tclass = 0xfc;
}

static void raw4(void)
{
	struct ethtool_usrip4_spec *h = &fs->h_u.usr_ip4_spec;
	struct ethtool_usrip4_spec *m = &fs->m_u.usr_ip4_spec;

	h->ip_ver = ETH_RX_NFC_IP4;
	h->proto = 253;
	m->proto = 0xff;
	h->l4_4_bytes = htonl(0x00000003);
	m->l4_4_bytes = htonl(0x0000000f);
}

static void rules(void)
{
	begin(IPV4_USER_FLOW, 3, 17);
	raw4();
	end("ip4-l4data");

	begin(IPV4_USER_FLOW, 0, 0);
	fs->h_u.usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
	end("ip4-anything");

	begin(IPV4_USER_FLOW, 31, 1023);
	raw4();
	fs->h_u.usr_ip4_spec.ip4src = inet_addr("192.0.2.0");
	fs->m_u.usr_ip4_spec.ip4src = inet_addr("255.255.255.0");
	fs->h_u.usr_ip4_spec.ip4dst = inet_addr("198.51.100.7");
	fs->m_u.usr_ip4_spec.ip4dst = inet_addr("255.255.255.255");
	fs->h_u.usr_ip4_spec.tos = 0xb8;
	fs->m_u.usr_ip4_spec.tos = 0xfc;
	end("ip4-all");

	begin(IPV6_USER_FLOW, 2, 1);
	inet_pton(AF_INET6, "2001:db8::", fs->h_u.usr_ip6_spec.ip6src);
	inet_pton(AF_INET6, "ffff:ffff::", fs->m_u.usr_ip6_spec.ip6src);
	inet_pton(AF_INET6, "2001:db8::7", fs->h_u.usr_ip6_spec.ip6dst);
	inet_pton(AF_INET6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  fs->m_u.usr_ip6_spec.ip6dst);
	fs->h_u.usr_ip6_spec.l4_4_bytes = htonl(0x0fa10000);
	fs->m_u.usr_ip6_spec.l4_4_bytes = htonl(0xffff0000);
	fs->h_u.usr_ip6_spec.tclass = 0xb8;
	fs->m_u.usr_ip6_spec.tclass = 0xfc;
	fs->h_u.usr_ip6_spec.l4_proto = 146;
	fs->m_u.usr_ip6_spec.l4_proto = 0xff;
	end("ip6-all");

	begin(TCP_V4_FLOW, 4, 2);
	ports4(&fs->h_u.tcp_ip4_spec, &fs->m_u.tcp_ip4_spec);
	end("tcp4");
	begin(UDP_V4_FLOW, 5, 3);
	ports4(&fs->h_u.udp_ip4_spec, &fs->m_u.udp_ip4_spec);
	end("udp4");
	begin(SCTP_V4_FLOW, 6, 4);
	ports4(&fs->h_u.sctp_ip4_spec, &fs->m_u.sctp_ip4_spec);
	end("sctp4");
	begin(TCP_V6_FLOW, 7, 5);
	ports6(&fs->h_u.tcp_ip6_spec, &fs->m_u.tcp_ip6_spec);
	end("tcp6");
	begin(UDP_V6_FLOW, 8, 6);
	ports6(&fs->h_u.udp_ip6_spec, &fs->m_u.udp_ip6_spec);
	end("udp6");
	begin(SCTP_V6_FLOW, 9, 7);
	ports6(&fs->h_u.sctp_ip6_spec, &fs->m_u.sctp_ip6_spec);
	end("sctp6");

	begin(ETHER_FLOW, 10, 8);
	memcpy(fs->h_u.ether_spec.h_dest, "\x02\x00\x00\x00\x00\x01", ETH_ALEN);
	memset(fs->m_u.ether_spec.h_dest, 0xff, ETH_ALEN);
	memcpy(fs->h_u.ether_spec.h_source, "\x02\x00\x5e\x00\x00\x00", ETH_ALEN);
	memcpy(fs->m_u.ether_spec.h_source, "\xff\xff\xff\x00\x00\x00", ETH_ALEN);
	fs->h_u.ether_spec.h_proto = htons(0x88f7);
	fs->m_u.ether_spec.h_proto = htons(0xffff);
	end("ether");

	begin(IPV4_USER_FLOW | FLOW_EXT | FLOW_MAC_EXT, 11, 9);
	raw4();
	memcpy(fs->h_ext.h_dest, "\x02\x00\x00\x00\x00\x01", ETH_ALEN);
	memset(fs->m_ext.h_dest, 0xff, ETH_ALEN);
	fs->h_ext.vlan_etype = htons(0x8100);
	fs->m_ext.vlan_etype = htons(0xffff);
	fs->h_ext.vlan_tci = htons(100);
	fs->m_ext.vlan_tci = htons(0x0fff);
	end("ip4-ext");

	begin(ETHER_FLOW | FLOW_EXT, 12, 10);
	fs->h_ext.vlan_tci = htons(100);
	fs->m_ext.vlan_tci = htons(0x0fff);
	end("ether-vlan");

	begin(UDP_V6_FLOW | FLOW_MAC_EXT, 13, 11);
	ports6(&fs->h_u.udp_ip6_spec, &fs->m_u.udp_ip6_spec);
	memcpy(fs->h_ext.h_dest, "\x02\x00\x00\x00\x00\x01", ETH_ALEN);
	memset(fs->m_ext.h_dest, 0xff, ETH_ALEN);
	end("udp6-mac");

	begin(IPV4_USER_FLOW, RX_CLS_FLOW_DISC, 12);
	raw4();
	end("drop");

	begin(IPV4_USER_FLOW,
	      ((__u64)(5 + 1) << ETHTOOL_RX_FLOW_SPEC_RING_VF_OFF) | 1, 13);
	raw4();
	end("vf");

	begin(IPV4_USER_FLOW | FLOW_RSS, 0, 14);
	raw4();
	nfc.rss_context = 2;
	end("rss");
}

#define SIZE(what) printf("size " #what " %zu\n", sizeof(struct what))
#define OFFSET(field) printf("offset " #field " %zu\n", offsetof(struct ethtool_rxnfc, field))
#define CONSTANT(name) printf("constant " #name " %#llx\n", (unsigned long long)name)

int main(void)
{
	SIZE(ethtool_rxnfc);
	SIZE(ethtool_channels);
	SIZE(ethtool_drvinfo);
	SIZE(ethtool_sset_info);
	SIZE(ethtool_gstrings);
	SIZE(ethtool_stats);
	OFFSET(cmd);
	OFFSET(data);
	OFFSET(fs.flow_type);
	OFFSET(fs.h_u);
	OFFSET(fs.h_ext);
	OFFSET(fs.h_ext.h_dest);
	OFFSET(fs.h_ext.vlan_etype);
	OFFSET(fs.h_ext.vlan_tci);
	OFFSET(fs.m_u);
	OFFSET(fs.m_ext);
	OFFSET(fs.ring_cookie);
	OFFSET(fs.location);
	OFFSET(rule_cnt);
	OFFSET(rss_context);
	OFFSET(rule_locs);
	CONSTANT(ETHTOOL_GRXRINGS);
	CONSTANT(ETHTOOL_GRXCLSRLCNT);
	CONSTANT(ETHTOOL_GRXCLSRULE);
	CONSTANT(ETHTOOL_GRXCLSRLALL);
	CONSTANT(ETHTOOL_SRXCLSRLDEL);
	CONSTANT(ETHTOOL_SRXCLSRLINS);
	CONSTANT(ETHTOOL_GCHANNELS);
	CONSTANT(ETHTOOL_SCHANNELS);
	CONSTANT(ETH_SS_STATS);
	CONSTANT(ETH_GSTRING_LEN);
	CONSTANT(RX_CLS_LOC_SPECIAL);
	rules();
	return 0;
}
