/**
 * Where a file may lie: a write-ahead log needs memory that all its processes share, and locks that the kernel keeps. A
 * network file system promises neither, and loses commits without a word (fault F21).
 */
import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { StatewrightError } from "@statewright/core";

/** What is asked of the machine: the number by which Linux tells kinds of file systems apart. */
export interface FileSystems {
  readonly platform: string;
  /** The kind of the file system that holds a path that is there. */
  typeOf(path: string): number;
}

const machine: FileSystems = { platform: process.platform, typeOf: (path) => Number(statfsSync(path).type) };

/** From `statfs(2)` and the kernel's `magic.h`; what a FUSE program does with locks and memory nobody can know. */
const remote: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x00c36400, "Ceph"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
  [0x47504653, "GPFS"],
  [0x0bd00bd0, "Lustre"],
  [0x19830326, "BeeGFS"],
  [0x786f4256, "VirtualBox shared folder"],
  [0xbacbacbc, "VMware shared folder"],
]);

/** Throws `store_failed` when the file at `path`, or the folder that it would be made in, is on a network file system. */
export function refuseRemote(path: string, { platform, typeOf }: FileSystems = machine): void {
  const kind = platform === "win32" ? shareOf(path) : platform === "linux" ? kindOf(path, typeOf) : undefined;
  if (kind === undefined) return;
  throw new StatewrightError("store_failed", {
    what: `"${path}" is on a network file system (${kind}), on which a write-ahead log is not safe`,
    next: 'Put the file on a local disk; { fileSystem: "any" } opens it where you know that locks and shared memory work',
    details: { path, fileSystem: kind },
  });
}

function kindOf(path: string, typeOf: FileSystems["typeOf"]): string | undefined {
  const there = existsSync(path) ? path : dirname(path);
  // A folder that is not there is told by SQLite, which is asked next.
  return existsSync(there) ? remote.get(typeOf(there) >>> 0) : undefined;
}

function shareOf(path: string): string | undefined {
  return /^[\\/]{2}(?![?.][\\/](?!UNC[\\/]))/i.test(path) ? "a network share" : undefined;
}
