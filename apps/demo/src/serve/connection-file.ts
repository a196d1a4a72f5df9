/** Port and token of the served demo, kept beside its store, so that clients find them again after a restart. */
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import * as z from "zod";
import { UsageError } from "../options.ts";

const Connection = z.object({ port: z.int().min(1).max(65_535), token: z.string().min(16) });

/** Port and token of a server. */
export type Connection = z.infer<typeof Connection>;

/** Returns the path of the connection file of a store. */
export function getConnectionPath(store: string): string {
  return `${store}.connection.json`;
}

/** Reads the connection of a store; undefined when the store was never served. Throws {@link UsageError}. */
export function readConnection(store: string): Connection | undefined {
  const path = getConnectionPath(store);
  if (!existsSync(path)) return undefined;
  const read = Connection.safeParse(parseJson(readFileSync(path, "utf8")));
  if (read.success) return read.data;
  throw new UsageError(`"${path}" does not hold a port and a token. Remove the file; the next start makes a new one.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Writes the connection of a store, readable by its owner only. */
export function writeConnection(store: string, connection: Connection): void {
  const path = getConnectionPath(store);
  // Opened with the mode: the token is never in a file that others can read.
  const file = openSync(path, "w", 0o600);
  chmodSync(path, 0o600);
  writeFileSync(file, `${JSON.stringify(connection, undefined, 2)}\n`);
  closeSync(file);
}

/** Creates a random token of 256 bits. */
export function createToken(): string {
  return randomBytes(32).toString("base64url");
}
