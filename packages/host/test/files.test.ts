import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isHostError, runProcess, type Workspace, workspace } from "../src/index.ts";
import { getFailure, onLinux } from "./support/processes.ts";

const posix = process.platform !== "win32";
const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));

let base: string;
let root: string;
let files: Workspace;

beforeEach(() => {
  base = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "statewright-files-"));
  root = join(base, "root");
  fs.mkdirSync(root);
  files = workspace(root);
});
afterEach(() => fs.rmSync(base, { recursive: true, force: true }));

const put = (path: string, content: string | Buffer = "") => {
  fs.mkdirSync(join(root, path, ".."), { recursive: true });
  fs.writeFileSync(join(root, path), content);
};
const listPaths = async (options: Parameters<Workspace["list"]>[0] = {}) =>
  (await files.list(options)).entries.map((entry) => entry.path);

/** Checks that the error has the path as given, and not the root. */
const expectFailure = async (work: Promise<unknown>, code: string, message: string) => {
  const error = await getFailure(work);
  expect(error).toMatchObject({ name: "HostError", code });
  expect(String(error)).toContain(message);
  expect(
    JSON.stringify([String(error), isHostError(error) && { ...error }, error instanceof Error && error.cause]),
  ).not.toContain(base);
};

describe("file reads", () => {
  test("reading a file returns its exact text with byte order mark and line ends", async () => {
    put("a/text.txt", "\ufeffé😀\r\nend");
    expect(await files.read("a/text.txt")).toEqual({
      kind: "text",
      text: "\ufeffé😀\r\nend",
      truncated: false,
      totalBytes: 14,
    });
    expect(await files.read(join(root, "a/../a/./text.txt"))).toMatchObject({ kind: "text" });
  });

  test("reading a file stops at the limit without cutting a character and reports the cut", async () => {
    put("long.txt", "é€😀".repeat(3));
    const whole = "é€😀".repeat(3);
    for (let maxBytes = 0; maxBytes < 27; maxBytes++) {
      const read = await files.read("long.txt", { maxBytes });
      if (read.kind !== "text") throw new Error("expected text");
      expect(whole.startsWith(read.text)).toBe(true);
      expect(Buffer.byteLength(read.text)).toBeGreaterThan(maxBytes - 4);
      expect(Buffer.byteLength(read.text)).toBeLessThanOrEqual(maxBytes);
      expect(read).toMatchObject({ truncated: true, totalBytes: 27 });
    }
    expect(await files.read("long.txt", { maxBytes: 27 })).toMatchObject({ text: whole, truncated: false });
  });

  test("reading a binary file returns bytes", async () => {
    const cases = [Buffer.from([0x61, 0, 0x62]), Buffer.from([0xff, 0xd8, 0xff]), Buffer.from("é").subarray(0, 1)];
    for (const bytes of cases) {
      put("image.bin", bytes);
      const read = await files.read("image.bin");
      expect(read).toMatchObject({ kind: "binary", truncated: false, totalBytes: bytes.length });
      expect(read.kind === "binary" && Buffer.from(read.bytes)).toEqual(bytes);
    }
    put("empty");
    expect(await files.read("empty")).toMatchObject({ kind: "text", text: "" });
  });

  test("reading reports the problem of a bad path", async () => {
    put("file.txt");
    fs.mkdirSync(join(root, "folder"));
    await expectFailure(files.read("missing.txt"), "not_found", "Cannot read missing.txt: no such file or folder");
    await expectFailure(files.read("file.txt/x"), "not_found", "Cannot read file.txt/x: a part of the path is a file");
    await expectFailure(
      files.read("folder"),
      "io",
      "Cannot read folder: the path is a folder. List the folder instead.",
    );
    await expectFailure(files.read(""), "io", "Cannot read .: the path is a folder");
    await expectFailure(files.read("x".repeat(300)), "io", "the name is too long");
    await expectFailure(files.read("a\0b"), "outside", "Cannot read a\0b");
    await expectFailure(files.list({ path: "missing" }), "not_found", "Cannot list missing: no such");
    await expectFailure(
      files.list({ path: "file.txt" }),
      "not_found",
      "Cannot list file.txt: a part of the path is a file",
    );
    await expectFailure(files.stat("missing"), "not_found", "Cannot look at missing: no such");
  });

  test.runIf(posix)("reading a pipe without a writer fails without waiting", async () => {
    await runProcess("mkfifo", ["pipe"], { cwd: root });
    await expectFailure(files.read("pipe"), "io", "Cannot read pipe: the path is a device, a pipe or a socket.");
    await expectFailure(files.write("pipe", "x"), "io", "Cannot write pipe: the path is a device, a pipe or a socket.");
    expect(await files.stat("pipe")).toMatchObject({ kind: "other" });
    expect((await files.list()).entries).toEqual([{ path: "pipe", kind: "other" }]);
  });

  test("reading works in a root that is reached by a link", async () => {
    put("file.txt", "x");
    fs.symlinkSync(root, join(base, "link"));
    const linked = workspace(join(base, "link"));
    expect(await linked.read("file.txt")).toMatchObject({ text: "x" });
    expect(await linked.read(join(base, "link", "file.txt"))).toMatchObject({ text: "x" });
    expect(await linked.read(join(root, "file.txt"))).toMatchObject({ text: "x" });
    await linked.write(join(root, "deep/new.txt"), "y");
    expect((await linked.list()).entries.map((entry) => entry.path)).toEqual(["deep", "deep/new.txt", "file.txt"]);
  });
});

describe("paths outside the root", () => {
  beforeEach(() => {
    fs.mkdirSync(join(base, "root-evil"));
    fs.mkdirSync(join(base, "outside"));
    fs.writeFileSync(join(base, "root-evil/secret"), "secret");
    fs.writeFileSync(join(base, "outside/secret"), "secret");
    put("inside/secret", "inside");
    fs.symlinkSync("../outside", join(root, "out"));
    fs.symlinkSync("../outside/secret", join(root, "out-file"));
    fs.symlinkSync(join(base, "root-evil"), join(root, "evil"));
    fs.symlinkSync("../outside/missing", join(root, "out-new"));
    fs.symlinkSync("inside", join(root, "in"));
    fs.symlinkSync("loop", join(root, "loop"));
  });

  test("a path outside the root is refused: dots, absolute paths, links and a sibling with the same prefix", async () => {
    const ways = ["../outside/secret", "..", "a/../../outside/secret", "../root-evil/secret", "/etc/passwd"];
    for (const path of [...ways, "out/secret", "out-file", "evil/secret"]) {
      const message = `${path}: the path is outside the workspace. Pass a path inside the workspace.`;
      const isGivenAsSuch = path.startsWith("/") ? "" : "Cannot read ";
      await expectFailure(files.read(path), "outside", isGivenAsSuch + message);
      await expectFailure(files.stat(path), "outside", message);
      await expectFailure(files.write(path, "x"), "outside", message);
      // A path below a file may be refused as not a folder, inside and outside of the root.
      expect(["outside", "not_found"]).toContain(await files.list({ path }).catch(getCode));
    }
    for (const path of ["..", "out", "evil", "/etc"]) await expectFailure(files.list({ path }), "outside", path);
    for (const path of ["out/new", "evil/deep/new", "out-new"])
      await expectFailure(files.write(path, "x"), "outside", path);
    expect(fs.readdirSync(join(base, "outside"))).toEqual(["secret"]);
    expect(fs.readdirSync(join(base, "root-evil"))).toEqual(["secret"]);
    expect(fs.readFileSync(join(base, "outside/secret"), "utf8")).toBe("secret");
  });

  test("a path that only resembles one outside the root is accepted", async () => {
    put("..data/x", "dots");
    expect(await files.read("..data/x")).toMatchObject({ text: "dots" });
    expect(await files.read("in/secret")).toMatchObject({ text: "inside" });
    expect(await files.stat("in/secret")).toMatchObject({ path: "inside/secret", kind: "file", bytes: 6 });
    await expectFailure(files.read("loop"), "io", "too many symbolic links (a cycle)");
    await expectFailure(files.write("loop", "x"), "io", "too many symbolic links (a cycle)");
  });

  describe.runIf(onLinux)("paths changed during use", () => {
    test("a path that changes to one outside the root is never read, listed or written, nor by a shared prefix [R10]", async () => {
      await expectFailure(files.read("../root-evil/secret"), "outside", "outside the workspace");
      await expectFailure(files.read("evil/secret"), "outside", "outside the workspace");
      const flipper = spawn(process.execPath, [fixture("flip.ts"), root], { stdio: ["ignore", "pipe", "inherit"] });
      await once(flipper.stdout, "data");
      const seen = { inside: 0, outside: 0, written: 0, refused: 0 };
      for (let turn = 0; turn < 1000 || Math.min(...Object.values(seen)) < 50; turn++) {
        const read = await files.read("door/secret").catch(getCode);
        if (read === "outside") seen.outside++;
        else {
          expect(read).toMatchObject({ text: "inside" });
          seen.inside++;
        }
        const wrote = await files.write(`door/new-${turn % 3}`, "x").catch(getCode);
        if (wrote === "outside") seen.refused++;
        else {
          expect(wrote).toMatchObject({ path: `inside/new-${turn % 3}` });
          seen.written++;
        }
        const listed = await files.list({ path: "door" }).catch(getCode);
        if (listed !== "outside") {
          expect(listed).toMatchObject({ entries: expect.arrayContaining([{ path: "inside/secret", kind: "file" }]) });
        }
      }
      flipper.kill("SIGKILL");
      await once(flipper, "exit");
      expect(fs.readdirSync(join(base, "outside"))).toEqual(["secret"]);
    });
  });
});

function getCode(error: unknown): string {
  return isHostError(error) ? error.code : String(error);
}

describe("file writes", () => {
  test("writing creates parent folders and reports the result", async () => {
    expect(await files.write("a/b/c.txt", "é")).toEqual({ path: "a/b/c.txt", created: true, bytes: 2 });
    expect(await files.write("a/b/c.txt", new Uint8Array([1, 2, 3]))).toEqual({
      path: "a/b/c.txt",
      created: false,
      bytes: 3,
    });
    expect(fs.readFileSync(join(root, "a/b/c.txt"))).toEqual(Buffer.from([1, 2, 3]));
    expect(fs.readdirSync(join(root, "a/b"))).toEqual(["c.txt"]);
  });

  test.runIf(posix)("writing keeps the mode of a file and gives a new file the default mode", async () => {
    put("run.sh", "old");
    fs.chmodSync(join(root, "run.sh"), 0o751);
    await files.write("run.sh", "new");
    expect(await files.stat("run.sh")).toMatchObject({ mode: 0o751, bytes: 3, kind: "file", path: "run.sh" });
    await files.write("new.txt", "x");
    put("usual.txt");
    expect((await files.stat("new.txt")).mode).toBe((await files.stat("usual.txt")).mode);
  });

  test.runIf(posix)("writing replaces a file atomically, and an open reader still reads the old content", async () => {
    put("file.txt", "old content");
    const old = fs.openSync(join(root, "file.txt"), "r");
    await files.write("file.txt", "new");
    expect(fs.readFileSync(old, "utf8")).toBe("old content");
    fs.closeSync(old);
    expect(fs.readFileSync(join(root, "file.txt"), "utf8")).toBe("new");
  });

  test("writing through a link inside the root keeps the link", async () => {
    put("real/file.txt", "old");
    fs.symlinkSync("real/file.txt", join(root, "link"));
    fs.symlinkSync(join(root, "real/new.txt"), join(root, "link-to-new"));
    expect(await files.write("link", "new")).toEqual({ path: "real/file.txt", created: false, bytes: 3 });
    expect(await files.write("link-to-new", "x")).toMatchObject({ path: "real/new.txt", created: true });
    expect(fs.lstatSync(join(root, "link")).isSymbolicLink()).toBe(true);
    expect(fs.readFileSync(join(root, "real/file.txt"), "utf8")).toBe("new");
  });

  test("writing to a path that is not a file is refused and leaves nothing behind", async () => {
    put("folder/x");
    await expectFailure(
      files.write("folder", "x"),
      "io",
      "Cannot write folder: the path is a folder. Use another name.",
    );
    await expectFailure(files.write("", "x"), "io", "Cannot write .: the path is a folder.");
    await expectFailure(files.write("folder/x/y", "x"), "not_found", "a part of the path is a file");
    await expectFailure(files.write(`folder/${"n".repeat(300)}`, "x"), "io", "the name is too long");
    expect(fs.readdirSync(join(root, "folder"))).toEqual(["x"]);
  });

  test.runIf(onLinux)("a write that fails midway leaves only the old file", async () => {
    put("kept.txt", "old");
    const script = 'trap "" XFSZ; ulimit -f 8; exec "$0" "$@"';
    const { stdout } = await runProcess("sh", ["-c", script, process.execPath, fixture("too-large.ts"), root]);
    expect(stdout).toBe(
      "too_large: Cannot write kept.txt: the file would exceed the size limit of the system. Write less data.",
    );
    expect(fs.readdirSync(root)).toEqual(["kept.txt"]);
    expect(fs.readFileSync(join(root, "kept.txt"), "utf8")).toBe("old");
  });

  test.runIf(onLinux)("reading, listing and refusals leave no file handle open", async () => {
    // Counts handles of files, not of pipes: pipes of an earlier command may close meanwhile.
    const handles = () =>
      fs.readdirSync("/proc/self/fd").filter((fd) => {
        const link = `/proc/self/fd/${fd}`;
        return fs.existsSync(link) && fs.readlinkSync(link).startsWith("/");
      }).length;
    put("a/b/.gitignore", "x");
    fs.symlinkSync("/etc", join(root, "out"));
    await files.read("a/b/.gitignore");
    const before = handles();
    const inside = ["a/b/.gitignore", "a/new/file", "a"];
    const all = [...inside, "out/passwd", "out", "missing", "a/b/.gitignore/x", ".."].flatMap((path) => [
      files.read(path),
      files.stat(path),
      files.list({ path }),
      files.write(path, "x"),
    ]);
    await Promise.allSettled(all);
    expect(handles()).toBe(before);
  });
});

describe("folder listings", () => {
  test("a listing names everything below in order, folders before their content, and does not follow links", async () => {
    for (const path of ["b.txt", "a/z.txt", "a/b/c.txt", "a-b.txt", "é/ü.txt", "node_modules/x/y.js", ".git/HEAD"])
      put(path);
    put("node_modules-2/x", "");
    put(".statewright-1a2b.tmp");
    fs.symlinkSync("a", join(root, "link"));
    expect(await files.list()).toEqual({
      entries: [
        { path: "a", kind: "folder" },
        { path: "a/b", kind: "folder" },
        { path: "a/b/c.txt", kind: "file" },
        { path: "a/z.txt", kind: "file" },
        { path: "a-b.txt", kind: "file" },
        { path: "b.txt", kind: "file" },
        { path: "link", kind: "link" },
        { path: "node_modules-2", kind: "folder" },
        { path: "node_modules-2/x", kind: "file" },
        { path: "é", kind: "folder" },
        { path: "é/ü.txt", kind: "file" },
      ],
      skipped: [".git", ".statewright-1a2b.tmp", "node_modules"],
      unreadable: [],
      truncated: false,
    });
    expect(await listPaths({ path: "link" })).toEqual(["a/b", "a/b/c.txt", "a/z.txt"]);
    expect(await listPaths({ depth: 1, skip: ["a", "é"] })).toContain("node_modules");
    expect(await listPaths({ path: "a", depth: 1 })).toEqual(["a/b", "a/z.txt"]);
  });

  test("a bounded listing is a prefix of the full one and reports the bound", async () => {
    for (const path of ["a/1", "a/2", "b/1", "c"]) put(path);
    const all = await listPaths();
    for (let limit = 0; limit <= all.length; limit++) {
      const listing = await files.list({ limit });
      expect(listing.entries.map((entry) => entry.path)).toEqual(all.slice(0, limit));
      expect(listing.truncated).toBe(limit < all.length);
    }
  });

  test.runIf(onLinux)("a listing handles file names of any bytes and counts those that it cannot name", async () => {
    for (const bytes of [[0xff], [0x61, 0x0a, 0x62], [0xe2, 0x82], [0x1b, 0x5b, 0x32, 0x4a]]) {
      fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(bytes)]), "");
    }
    fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x64, 0xfe])]));
    const { entries, unreadable } = await files.list();
    expect(entries.map((entry) => entry.path)).toEqual(["\u001b[2J", "a\nb"]);
    expect(unreadable.map(({ path }) => path)).toEqual(["d\ufffd", "\ufffd", "\ufffd"]);
    expect(unreadable[0]?.cause).toContain("not valid UTF-8");
  });

  test.runIf(onLinux)("a listing continues past a folder that cannot be opened", async () => {
    put("b.txt");
    // Deeper than a path can be: refused even for a superuser.
    const name = "d".repeat(250);
    execFileSync(
      "sh",
      ["-c", `i=0; while [ $i -lt 20 ]; do mkdir ${name} && cd ${name} || break; i=$((i + 1)); done 2>/dev/null`],
      {
        cwd: root,
      },
    );
    const { entries, unreadable, truncated } = await files.list();
    expect(entries[0]).toEqual({ path: "b.txt", kind: "file" });
    expect(unreadable).toMatchObject([{ cause: "ENAMETOOLONG" }]);
    expect(truncated).toBe(false);
    execFileSync("rm", ["-rf", join(root, name)]);
  });

  test("a cancelled listing fails with cancelled", async () => {
    put("a/b");
    const error = await getFailure(files.list({ signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: "cancelled" });
  });

  test("a listing applies the .gitignore of every folder from the root down, also when it starts below", async () => {
    put(".gitignore", "*.log\n/dist\nbuild/\n!keep.log\n");
    put("pkg/.gitignore", "!debug.log\nlocal\n");
    for (const path of [
      "x.log",
      "keep.log",
      "dist/a",
      "pkg/dist/a",
      "pkg/build/a",
      "pkg/debug.log",
      "pkg/x.log",
      "pkg/local/a",
    ]) {
      put(path);
    }
    const below = ["pkg/.gitignore", "pkg/debug.log", "pkg/dist", "pkg/dist/a"];
    expect(await listPaths()).toEqual([".gitignore", "keep.log", "pkg", ...below]);
    expect(await listPaths({ path: "pkg" })).toEqual(below);
    expect((await files.list()).skipped).toEqual(["dist", "pkg/build", "pkg/local", "pkg/x.log", "x.log"]);
    expect(await listPaths({ gitignore: false })).toContain("pkg/build/a");
  });

  test("a listing ignores a .gitignore that links outside the root", async () => {
    fs.writeFileSync(join(base, "rules"), "*.txt");
    fs.symlinkSync("../rules", join(root, ".gitignore"));
    put("a.txt");
    expect(await listPaths()).toContain("a.txt");
  });
});
