/**
 * File system check: a write-ahead log needs shared memory between processes, and locks of the kernel. A network file
 * system guarantees neither, and silently loses commits (fault F21).
 */
import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { StatewrightError } from "@statewright/core";

/** System calls of the check: Linux identifies file systems by number. */
export interface FileSystems {
  readonly platform: string;
  /** Returns the file system type of an existing path. */
  getType(path: string): number;
}

const systemFileSystems: FileSystems = { platform: process.platform, getType: (path) => Number(statfsSync(path).type) };

/** Types of `statfs(2)` and the kernel's `magic.h`; locks and shared memory of a FUSE program are unknown. */
const remoteTypes: ReadonlyMap<number, string> = new Map([
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

/** Throws `store_failed` if the file at `path`, or the folder of a new file, is on a network file system. */
export function refuseRemote(path: string, { platform, getType }: FileSystems = systemFileSystems): void {
  const kind =
    platform === "win32" ? findNetworkShare(path) : platform === "linux" ? findRemoteType(path, getType) : undefined;
  if (kind === undefined) return;
  throw new StatewrightError("store_failed", {
    what: `"${path}" is on a network file system (${kind}), where a write-ahead log is not safe`,
    next: 'Move the file to a local disk; { fileSystem: "any" } opens the file if locks and shared memory are known to work',
    details: { path, fileSystem: kind },
  });
}

function findRemoteType(path: string, getType: FileSystems["getType"]): string | undefined {
  const existingPath = existsSync(path) ? path : dirname(path);
  // SQLite reports a missing folder afterwards.
  return existsSync(existingPath) ? remoteTypes.get(getType(existingPath) >>> 0) : undefined;
}

function findNetworkShare(path: string): string | undefined {
  return /^[\\/]{2}(?![?.][\\/](?!UNC[\\/]))/i.test(path) ? "a network share" : undefined;
}
