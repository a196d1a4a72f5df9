/** Condition of a change: the head of the branch is the checkpoint of `If-Match`. */
import type { RouteCall } from "../http/route.ts";
import { formatEtag, matchesEtag } from "./request-headers.ts";
import { createChangedProblem } from "./request-problems.ts";

/**
 * Returns the checkpoint of the header `If-Match`, which is the head of the branch; undefined without the header. Throws
 * a problem (412) when the head is another checkpoint.
 */
export async function checkHead(
  { request, service }: RouteCall,
  thread: string,
  branch: string | undefined,
): Promise<number | undefined> {
  const expected = request.headers.get("if-match");
  if (expected === null) return undefined;
  const { checkpoint } = await service.getState(thread, { branch });
  if (matchesEtag(expected, formatEtag(checkpoint))) return checkpoint;
  throw createChangedProblem(expected, checkpoint);
}
