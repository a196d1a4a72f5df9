/** Conformance tests of reading, listing and deleting artifacts, shared by stores and custom artifact stores. */
import { getArtifactHandle } from "@statewright/core/adapter";
import type { ArtifactWrite, StoredArtifacts } from "@statewright/core/store";
import { assertEqual, assertRejected, assertTrue } from "./assert.ts";
import { createArtifact } from "./store-rows.ts";

/** Test of the reads and deletes of artifacts; `put` stores the artifacts of a thread. */
interface ReadTest {
  readonly name: string;
  body(
    artifacts: StoredArtifacts,
    put: (thread: string, writes: readonly ArtifactWrite[]) => Promise<void>,
  ): Promise<void>;
}

/** Tests shared by stores and custom artifact stores. */
export const artifactReadTests: readonly ReadTest[] = [
  {
    name: "an artifact is readable completely and in byte ranges, in its own thread only",
    body: async (artifacts, put) => {
      const body = Uint8Array.from({ length: 150_000 }, (_, index) => (index * 31) % 251);
      const { row } = await createArtifact(body, { text: false });
      await put("t", [{ row, body }]);
      await put("u", [await createArtifact("of another thread")]);
      assertTrue(hasSameBytes(await artifacts.read("t", row.key), body), "the whole");
      for (const [offset, limit] of [
        [0, 1],
        [0, 65_536],
        [65_535, 2],
        [65_536, 65_536],
        [131_071, 40_000],
        [149_999, 5],
        [1_000, 148_000],
      ] as const) {
        const part = await artifacts.read("t", row.key, { offset, limit });
        assertTrue(
          hasSameBytes(part, body.subarray(offset, offset + limit)),
          `the ${limit} bytes from offset ${offset} differ`,
        );
      }
      assertEqual(
        (await artifacts.read("t", row.key, { offset: 150_000, limit: 9 }))?.length,
        0,
        "the length of a range beyond the end",
      );
      assertEqual(await artifacts.read("u", row.key), undefined, "the body read from another thread");
      assertEqual(await artifacts.read("unknown", row.key), undefined, "the body read from an unknown thread");
      await assertRejected(
        artifacts.read("t", row.key, { offset: -1, limit: 5 }),
        "invalid_option",
        "a range with a negative offset",
      );
      await assertRejected(
        artifacts.read("t", row.key, { offset: 0, limit: 0 }),
        "invalid_option",
        "a range of 0 bytes",
      );
    },
  },
  {
    name: "artifacts are listed in insertion order and can be filtered by run, key and handle",
    body: async (artifacts, put) => {
      const [one, other, third] = [
        await createArtifact("one", { name: "ä\u2028.txt" }),
        await createArtifact("other", { run: "r2", redaction: "skipped" }),
        await createArtifact("one", { run: "r2", call: "c2" }),
      ];
      await put("t", [one, other]);
      await put("t", [third]);
      await put("u", [await createArtifact("elsewhere")]);
      assertEqual(await artifacts.list("t"), [one.row, other.row, third.row], "all");
      assertEqual(await artifacts.list("t", { limit: 1 }), [one.row], "the first");
      assertEqual(await artifacts.list("t", { run: "r2" }), [other.row, third.row], "the artifacts of one run");
      assertEqual(await artifacts.list("t", { key: one.row.key }), [one.row, third.row], "the artifacts with one key");
      assertEqual(
        await artifacts.list("t", { key: getArtifactHandle(other.row.key) }),
        [other.row],
        "the artifacts with one handle",
      );
      assertEqual(
        await artifacts.list("t", { key: other.row.key.slice(0, 15) }),
        [],
        "the artifacts with a part of a handle",
      );
      assertEqual(await artifacts.list("u", { key: one.row.key }), [], "the artifacts with the key of another thread");
      assertEqual(await artifacts.list("unknown"), [], "the artifacts of an unknown thread");
    },
  },
  {
    name: "identical bodies of several tool calls are stored once and deleted with all their rows",
    body: async (artifacts, put) => {
      const [one, again] = [await createArtifact("same"), await createArtifact("same", { call: "c2", run: "r2" })];
      const other = await createArtifact("other");
      await put("t", [one, again, other]);
      await put("u", [one]);
      assertEqual(await artifacts.delete("t", one.row.key), true, "the result of the first delete");
      assertEqual(await artifacts.delete("t", one.row.key), false, "the result of the second delete");
      assertEqual(await artifacts.list("t"), [other.row], "the remaining rows");
      assertEqual(await artifacts.read("t", one.row.key), undefined, "the body");
      assertEqual(decodeText(await artifacts.read("t", other.row.key)), "other", "the body of the other artifact");
      assertEqual(decodeText(await artifacts.read("u", one.row.key)), "same", "the body in another thread");
      await put("t", [again]);
      assertEqual(decodeText(await artifacts.read("t", one.row.key)), "same", "the body after a second put");
    },
  },
  {
    name: "an artifact with an empty body can be stored and read",
    body: async (artifacts, put) => {
      const empty = await createArtifact("");
      await put("t", [empty]);
      assertEqual((await artifacts.read("t", empty.row.key))?.length, 0, "the body");
      assertEqual(await artifacts.list("t"), [empty.row], "the row");
    },
  },
];

/** Decodes a body as UTF-8 text. */
export function decodeText(body: Uint8Array | undefined): string | undefined {
  return body === undefined ? undefined : new TextDecoder().decode(body);
}

/** Returns true if both bodies have equal bytes. */
export function hasSameBytes(bytes: Uint8Array | undefined, expected: Uint8Array): boolean {
  return bytes?.length === expected.length && bytes.every((byte, index) => byte === expected[index]);
}
