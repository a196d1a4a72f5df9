/**
 * Details of threads: title, metadata, tenant and owner, with a single checksum. The title is encrypted; metadata,
 * tenant and owner are not, because lists search them.
 */
import { type ThreadDetails, threadRules } from "@statewright/core/store";
import { decryptPayload, type Payload, type ThreadCipher } from "./cipher.ts";
import { computeColumnSum } from "./column-sums.ts";
import { createCorruptError } from "./corrupt-error.ts";

/** Columns of a thread and of its details; `sum` is null for a thread without details. */
export interface DetailColumns {
  readonly id: string;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly title: Payload | null;
  readonly metadata: string | null;
  readonly sum: number | null;
}

/** Title and checksum as stored. */
export interface DetailPayload {
  readonly title: Payload | null;
  readonly sum: number;
}

/** Returns the columns of details that depend on encryption. */
export function toDetailPayload(
  cipher: ThreadCipher | undefined,
  thread: string,
  details: ThreadDetails,
): DetailPayload {
  const { title = null, metadata, tenant = null, owner = null } = details;
  const stored = title === null || cipher === undefined ? title : cipher.encrypt(title, titleContext);
  const text = metadata === undefined ? null : JSON.stringify(metadata);
  return { title: stored, sum: computeColumnSum([thread, tenant, owner, stored, text]) };
}

const titleContext = ["thread_details.title"] as const;

/** Reads and verifies the details of a thread. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readDetails(cipher: ThreadCipher | undefined, columns: DetailColumns): ThreadDetails {
  const { id, tenant, user, title, metadata, sum } = columns;
  const isIntact =
    sum === null ? tenant === null && user === null : sum === computeColumnSum([id, tenant, user, title, metadata]);
  if (!isIntact) throw createCorruptError("the details of a thread do not match their checksum", { thread: id });
  return threadRules.toThreadDetails({
    title: title === null ? undefined : decryptPayload(cipher, id, title, () => titleContext),
    metadata: metadata === null ? undefined : JSON.parse(metadata),
    tenant: tenant ?? undefined,
    owner: user ?? undefined,
  });
}
