/** Classification of IP addresses: public network, or this machine and private networks. */
import { BlockList, isIP } from "node:net";

const nonPublicRanges = new BlockList();
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
  nonPublicRanges.addSubnet(address, bits, "ipv4");
// Ranges that embed IPv4 addresses (Teredo, 6to4), documentation ranges and unassigned ranges.
for (const [address, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  nonPublicRanges.addSubnet(address, bits, "ipv6");

const globalUnicastRange = new BlockList();
globalUnicastRange.addSubnet("2000::", 3, "ipv6");

/** Returns true if the string is an IP address of the public network. False for any other string. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !nonPublicRanges.check(address, "ipv4");
  return (
    family === 6 &&
    !address.includes("%") &&
    globalUnicastRange.check(address, "ipv6") &&
    !nonPublicRanges.check(address, "ipv6")
  );
}
