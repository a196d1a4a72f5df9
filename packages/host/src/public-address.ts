/** Which addresses are of the public network: everything else leads into this machine or a network around it. */
import { BlockList, isIP } from "node:net";

const notPublic = new BlockList();
for (const [address, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  notPublic.addSubnet(address, bits, "ipv4");
// Ways to an IPv4 address inside an IPv6 one, addresses for examples, and those that belong to no network.
for (const [address, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  notPublic.addSubnet(address, bits, "ipv6");

const assigned = new BlockList();
assigned.addSubnet("2000::", 3, "ipv6");

/** Whether an IP address is one of the public network. What is no address is not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !notPublic.check(address, "ipv4");
  return family === 6 && !address.includes("%") && assigned.check(address, "ipv6") && !notPublic.check(address, "ipv6");
}
