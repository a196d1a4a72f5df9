import * as z from "zod";

const refusal = z.object({ status: z.number() });

/** Returns the HTTP status of a refused request; undefined for other failures. */
export function getStatus(error: unknown): number | undefined {
  return refusal.safeParse(error).data?.status;
}

/** Returns true if the server could not be reached. */
export function isLostConnection(error: unknown): boolean {
  return error instanceof TypeError || /network|connection|failed to fetch/i.test(describeError(error));
}

/** Sentence that tells a reader of a failure. */
export function describeError(error: unknown): string {
  const status = getStatus(error);
  if (status === 404) return "This chat does not exist.";
  if (status !== undefined) return `The server refused the request (${status}).`;
  return error instanceof Error && error.message !== "" ? error.message : "The assistant could not answer.";
}
