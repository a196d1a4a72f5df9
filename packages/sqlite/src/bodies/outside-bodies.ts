/**
 * Artifact bodies outside of the file. A body is announced in the file, put, and then named by its commit: a committed
 * artifact has its body. A body that no artifact names for a day is swept.
 */
import { hash } from "node:crypto";
import { StatewrightError, type World } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import {
  type ArtifactBodies,
  type ArtifactWrite,
  type ByteRange,
  storeRules,
  type ThreadExport,
} from "@statewright/core/store";
import { createCorruptError, type ThreadCipher, type ValueContext } from "@statewright/store-kit";
import type { Owner } from "../file/owner.ts";
import { toStoreError } from "../file/store-errors.ts";
import type { Reader } from "../read/reader.ts";
import type { Transactions } from "../write/transactions.ts";
import { type OutsideBodyRows, toOutsideKey } from "./outside-body-rows.ts";

/** Time in milliseconds for which a body without an artifact is kept: a thread can be imported again meanwhile. */
const keptUnusedMs = 24 * 3_600_000;

/** Least time between two sweeps in milliseconds. */
const sweepEveryMs = 3_600_000;

const bodiesPerSweep = 100;

/** Wait in milliseconds for another store that sweeps a body of the same content. */
const sweepWaitMs = 20;

/** Body outside of the file, with the artifact that it belongs to. */
export interface OutsideBody {
  readonly thread: string;
  /** Key of the artifact: the SHA-256 of the body. */
  readonly artifact: string;
  readonly outsideKey: string;
  readonly cipher: ThreadCipher | undefined;
}

/** Dependencies of bodies outside of the file. */
export interface OutsideBodiesParts {
  readonly bodies: ArtifactBodies;
  readonly rows: OutsideBodyRows;
  readonly transactions: Pick<Transactions, "write">;
  readonly owner: Owner;
  readonly reader: Pick<Reader, "ciphers">;
  readonly world: World;
  readonly isEncrypted: boolean;
}

/** Puts, reads, re-encrypts and sweeps the bodies of an open store. */
export class OutsideBodies {
  readonly #parts: OutsideBodiesParts;
  /** Last write of each thread that waits for its bodies: later writes of the thread keep their order. */
  readonly #waiting: Map<string, Promise<void>> = new Map();
  #sweptAt = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<number> | undefined;

  constructor(parts: OutsideBodiesParts) {
    this.#parts = parts;
  }

  /** Calls `write` after the bodies of the artifacts are put, and after earlier writes of the thread. */
  putBefore(
    thread: string,
    artifacts: readonly ArtifactWrite[],
    { write, fail }: { readonly write: () => void; readonly fail: (error: StatewrightError) => void },
  ): void {
    const earlier = this.#waiting.get(thread);
    const isPlain = artifacts.every(({ body }) => body.length === 0);
    if (isPlain && earlier === undefined) {
      write();
      return;
    }
    const done = (earlier ?? Promise.resolve())
      .then(() => this.put(thread, artifacts))
      .then(write, (thrown: unknown) => fail(toStoreError(thrown, { thread })))
      .then(() => {
        if (this.#waiting.get(thread) === done) this.#waiting.delete(thread);
      });
    this.#waiting.set(thread, done);
  }

  /** Returns true if a write waits for its bodies, or bodies are being swept. */
  isBusy(): boolean {
    return this.#waiting.size > 0 || this.#sweeping !== undefined;
  }

  /**
   * Resolves when no write waits for its bodies and no body is being deleted: after the owner is gone, another store may
   * put the body again.
   */
  async waitUntilIdle(): Promise<void> {
    while (this.isBusy()) await Promise.allSettled([...this.#waiting.values(), this.#sweeping]);
  }

  /** Announces and puts bodies. Throws `store_failed`. */
  async put(thread: string, artifacts: readonly Pick<ArtifactWrite, "row" | "body">[]): Promise<void> {
    const distinct = new Map(artifacts.flatMap(({ row, body }) => (body.length === 0 ? [] : [[row.key, body]])));
    if (distinct.size === 0) return;
    const { bodies } = this.#parts;
    const { cipher, outside } = await this.#announce(thread, [...distinct.keys()]);
    await Promise.all(
      outside.map(async ({ artifact, outsideKey }) => {
        const body = distinct.get(artifact) ?? new Uint8Array();
        await run(() => bodies.put(outsideKey, encrypt(cipher, outsideKey, body)), "put");
      }),
    );
    this.#startSweep();
  }

  /** Puts the bodies of an import. An encrypted store keeps them in the file: the thread has no secret yet. */
  async putImported({ id, artifacts }: Pick<ThreadExport, "id" | "artifacts">): Promise<void> {
    if (this.#parts.isEncrypted) return;
    await this.put(
      id,
      artifacts.flatMap(({ row, body }) => (body === undefined ? [] : [{ row, body }])),
    );
  }

  /** Encrypts a body with the newest key of its thread; false for a body with this key. */
  async reencrypt({ thread, artifact, outsideKey, cipher }: OutsideBody): Promise<boolean> {
    const { bodies } = this.#parts;
    const found = await run(() => bodies.read(outsideKey), "read");
    if (found === undefined) throw createCorruptError(`the body of the artifact "${artifact}" is missing`, { thread });
    if (cipher === undefined || !cipher.isOutdated(found)) return false;
    const body = cipher.decryptBytes(found, toContext(outsideKey));
    await run(() => bodies.put(outsideKey, encrypt(cipher, outsideKey, body)), "put");
    return true;
  }

  /**
   * Deletes the bodies that no artifact names for a day; returns their number. Joins a sweep that this store has begun:
   * a second deletion of the same body might follow a new put.
   */
  async sweep(): Promise<number> {
    this.#sweptAt = this.#parts.world.clock.now();
    this.#sweeping ??= this.#sweepAll().finally(() => {
      this.#sweeping = undefined;
    });
    return await this.#sweeping;
  }

  async #sweepAll(): Promise<number> {
    let total = 0;
    for (;;) {
      const { deleted, isComplete } = await this.#sweepPage();
      total += deleted;
      if (isComplete) return total;
    }
  }

  async #sweepPage(): Promise<{ readonly deleted: number; readonly isComplete: boolean }> {
    const { bodies, rows, transactions, owner, world } = this.#parts;
    const { keys, self } = await transactions.write(undefined, () => {
      const at = world.clock.now();
      const id = owner.getId() ?? owner.register(at);
      return { keys: rows.beginSweep(at - keptUnusedMs, bodiesPerSweep, { self: id, owner }), self: id };
    });
    if (keys.length === 0) return { deleted: 0, isComplete: true };
    const results = await Promise.allSettled(keys.map((key) => run(() => bodies.delete(key), "delete")));
    const isDeleted = (_: string, index: number): boolean => results[index]?.status === "fulfilled";
    const deleted = keys.filter(isDeleted);
    const kept = keys.filter((key, index) => !isDeleted(key, index));
    await transactions.write(undefined, () => rows.endSweep(deleted, kept, self));
    for (const result of results)
      if (result.status === "rejected")
        world.log("warn", "an artifact body that no artifact names could not be deleted", {
          error: String(result.reason),
        });
    return { deleted: deleted.length, isComplete: keys.length < bodiesPerSweep || kept.length > 0 };
  }

  /** Starts a sweep at most once an hour. */
  #startSweep(): void {
    const { world } = this.#parts;
    if (world.clock.now() - this.#sweptAt < sweepEveryMs) return;
    this.sweep().catch((thrown: unknown) => {
      world.log("debug", "a sweep of artifact bodies ended", { error: toStoreError(thrown).message });
    });
  }

  async #announce(
    thread: string,
    artifacts: readonly string[],
  ): Promise<{ readonly cipher: ThreadCipher | undefined; readonly outside: readonly OutsideBody[] }> {
    const { rows, transactions, owner, reader, world, isEncrypted } = this.#parts;
    for (;;) {
      const announced = await transactions.write(undefined, () => {
        const cipher = reader.ciphers.get(thread);
        if (isEncrypted && cipher === undefined) throw storeRules.createUnknownThreadError(thread);
        const outside = artifacts.map((artifact) => {
          const outsideKey = toOutsideKey(cipher, artifact);
          return { thread, artifact, outsideKey, cipher };
        });
        const at = world.clock.now();
        // A sweep of this store that failed left its mark.
        const isAlive = (id: number): boolean =>
          id === owner.getId() ? this.#sweeping !== undefined : owner.isAlive(id);
        const isFree = outside.map(({ outsideKey }) => rows.announce(outsideKey, at, { isAlive })).every(Boolean);
        return isFree ? { cipher, outside } : undefined;
      });
      if (announced !== undefined) return announced;
      await new Promise<void>((resolve) => void world.schedule.after(sweepWaitMs, resolve));
    }
  }
}

/**
 * Creates the reader of bodies outside of the file. It throws `store_corrupt` for a missing or modified body, and
 * `invalid_option` in a store without `artifactBodies`.
 */
export function createOutsideReader(
  bodies: ArtifactBodies | undefined,
): (outside: OutsideBody, range?: ByteRange) => Promise<Uint8Array> {
  return async ({ thread, artifact, outsideKey, cipher }, range) => {
    if (bodies === undefined) throw createNoBodiesError(thread, artifact);
    const found = await run(() => bodies.read(outsideKey), "read");
    if (found === undefined) throw createCorruptError(`the body of the artifact "${artifact}" is missing`, { thread });
    const body = cipher === undefined ? found : cipher.decryptBytes(found, toContext(outsideKey));
    if (hash("sha256", body) !== artifact)
      throw createCorruptError(`the artifact "${artifact}" does not match its hash`, { thread });
    // A Buffer is another class for callers that compare bytes.
    const bytes = new Uint8Array(body.buffer, body.byteOffset, body.length);
    return range === undefined ? bytes : bytes.slice(range.offset, range.offset + range.limit);
  };
}

/** Creates the error for a body outside of the file in a store without `artifactBodies`. */
export function createNoBodiesError(thread: string, artifact: string): StatewrightError {
  return invalidOption({
    where: "sqliteStore",
    option: "artifactBodies",
    expected: `the bodies of this file, because the body of the artifact "${artifact}" is outside of it`,
    found: "no artifactBodies",
    fix: "Pass the artifactBodies that wrote the file",
    place: { thread },
  });
}

function encrypt(cipher: ThreadCipher | undefined, outsideKey: string, body: Uint8Array): Uint8Array {
  return cipher === undefined ? body : cipher.encryptBytes(body, toContext(outsideKey));
}

function toContext(outsideKey: string): ValueContext {
  return ["artifact_bodies", outsideKey];
}

/** Calls a method of `ArtifactBodies`. Throws `store_failed` with its error as the cause. */
async function run<Value>(operation: () => Promise<Value>, method: keyof ArtifactBodies): Promise<Value> {
  try {
    return await operation();
  } catch (cause) {
    throw new StatewrightError("store_failed", {
      what: `artifactBodies.${method} failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Check the cause; the write that needs the body was not saved",
      cause,
    });
  }
}
