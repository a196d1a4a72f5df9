import * as z from "zod";

const request = z.object({
  name: z.string(),
  args: z.record(z.string(), z.unknown()),
  description: z.string().optional(),
});
const approvals = z.object({ value: z.object({ action_requests: z.array(request).min(1) }) });

/** Tool call that waits for a decision. */
export type ActionRequest = z.infer<typeof request>;

/** Answer to a request. The server reads one for each request, in their order. */
export type Decision = { readonly type: "approve" } | { readonly type: "reject"; readonly message?: string };

/** Lists the requests of an interrupt. Other interrupts have none. */
export function listRequests(interrupt: unknown): readonly ActionRequest[] {
  return approvals.safeParse(interrupt).data?.value.action_requests ?? [];
}

/** Tool call of a message. */
interface Call {
  readonly name: string;
  readonly args: unknown;
}

/** Index of the request for each call; undefined for calls that wait for no decision. Equal calls keep their order. */
export function matchRequests(
  calls: readonly Call[],
  requests: readonly ActionRequest[],
): readonly (number | undefined)[] {
  const taken = new Set<number>();
  return calls.map(({ name, args }) => {
    const index = requests.findIndex(
      (known, at) => !taken.has(at) && known.name === name && JSON.stringify(known.args) === JSON.stringify(args),
    );
    if (index === -1) return undefined;
    taken.add(index);
    return index;
  });
}
