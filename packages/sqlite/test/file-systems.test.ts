import fs, { existsSync, mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { type FileSystems, refuseRemote } from "../src/file/refuse-remote.ts";
import { type SqliteStoreOptions, sqliteStore } from "../src/index.ts";

const linux = (type: number): FileSystems => ({ platform: "linux", getType: () => type });

/** File system numbers as statfs returns them: a 32-bit kernel returns some of them negative. */
const remote: Readonly<Record<string, readonly number[]>> = {
  NFS: [0x6969],
  SMB: [0x517b],
  CIFS: [0xff534d42, 0xff534d42 | 0],
  SMB2: [0xfe534d42, 0xfe534d42 | 0],
  FUSE: [0x65735546],
  "9P": [0x01021997],
  AFS: [0x5346414f],
  Ceph: [0x00c36400],
  Lustre: [0x0bd00bd0],
};

const local: Readonly<Record<string, number>> = {
  ext4: 0xef53,
  xfs: 0x58465342,
  btrfs: 0x9123683e,
  tmpfs: 0x01021994,
  overlayfs: 0x794c7630,
  zfs: 0x2fc12fc1,
};

describe("network file systems [F21]", () => {
  for (const [kind, numbers] of Object.entries(remote)) {
    test(`a file on ${kind} is refused with the workaround [F21]`, () => {
      for (const number of numbers)
        expect(() => refuseRemote("/tmp/agent.db", linux(number))).toThrow(
          expect.objectContaining({
            code: "store_failed",
            message: expect.stringMatching(new RegExp(`network file system \\(${kind}\\).*fileSystem: "any"`)),
            details: { path: "/tmp/agent.db", fileSystem: kind },
          }),
        );
    });
  }

  for (const [kind, number] of Object.entries(local))
    test(`a file on ${kind} is opened`, () => expect(() => refuseRemote("/tmp/agent.db", linux(number))).not.toThrow());

  test.runIf(process.platform === "linux")(
    "sqliteStore refuses a file on a network file system, and opens it with fileSystem any [FX80, F21]",
    () => {
      const file = join(mkdtempSync(join(tmpdir(), "statewright-remote-")), "agent.db");
      const { statfsSync } = fs;
      const open = (options: SqliteStoreOptions) => sqliteStore(file, options).close();
      // The kernel of this test reports every file as a file on NFS.
      fs.statfsSync = Object.assign(() => ({ ...statfsSync(tmpdir()), type: 0x6969 }), statfsSync);
      syncBuiltinESMExports();
      try {
        expect(() => open({})).toThrow(/network file system \(NFS\)/);
        expect(existsSync(file)).toBe(false);
        expect(() => open({ fileSystem: "any" })).not.toThrow();
      } finally {
        fs.statfsSync = statfsSync;
        syncBuiltinESMExports();
        rmSync(dirname(file), { recursive: true, force: true });
      }
    },
  );

  test("a Windows network share is refused, and a drive and a device path are not [F21]", () => {
    const windows: FileSystems = { platform: "win32", getType: () => 0 };
    for (const path of [
      "\\\\server\\share\\agent.db",
      "//server/share/agent.db",
      "\\\\?\\UNC\\server\\share\\agent.db",
    ])
      expect(() => refuseRemote(path, windows), path).toThrow(/network share/);
    for (const path of ["C:\\agent.db", "\\\\?\\C:\\agent.db", "\\\\.\\C:\\agent.db"])
      expect(() => refuseRemote(path, windows), path).not.toThrow();
  });

  test("a missing folder is left to SQLite, and the file is checked before its folder", () => {
    const asked: string[] = [];
    const spy: FileSystems = { platform: "linux", getType: (path) => asked.push(path) };
    refuseRemote("/no/such/folder/agent.db", spy);
    refuseRemote("/tmp/not-there.db", spy);
    expect(asked).toEqual(["/tmp"]);
  });
});
