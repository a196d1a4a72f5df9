/** Subscription of a stream: which frames a client wants. */
import * as z from "zod";
import { type V2Channel, type V2Frame, v2Channels } from "./v2-frame.ts";

const namespaceSchema = z.array(z.string().max(256)).max(64);

const customChannel = z.templateLiteral(["custom:", z.string().max(256)]);

/** What a client subscribes to. */
export interface Subscription {
  /** Channels; `custom:name` is the custom events of a name. */
  readonly channels: readonly (V2Channel | `custom:${string}`)[];
  /** Namespaces whose frames, and those of the graphs inside, the client wants. Default: all. */
  readonly namespaces?: readonly (readonly string[])[] | null | undefined;
  /** Levels below the namespaces. Default: all. */
  readonly depth?: number | null | undefined;
  /** Number of the last frame that the client has read. */
  readonly since?: number | null | undefined;
}

/** Body of a request for a stream of events. Unknown keys are dropped. */
export const subscriptionSchema: z.ZodType<Subscription> = z.object({
  channels: z
    .array(z.union([z.enum(v2Channels), customChannel]))
    .min(1)
    .max(100),
  namespaces: z.array(namespaceSchema).max(1_000).nullish(),
  depth: z.number().int().min(0).max(1_000).nullish(),
  since: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).nullish(),
});

/** Returns true for a frame of a channel, a namespace and a depth that the client wants. */
export function isSubscribed({ channels, namespaces, depth }: Subscription, frame: V2Frame): boolean {
  if (!isInChannels(channels, frame)) return false;
  if (namespaces === undefined || namespaces === null || namespaces.length === 0) return true;
  return namespaces.some((prefix) => {
    const below = frame.namespace.length - prefix.length;
    return hasPrefix(frame.namespace, prefix) && (depth === undefined || depth === null || below <= depth);
  });
}

function isInChannels(channels: Subscription["channels"], frame: V2Frame): boolean {
  const { channel } = frame;
  if (channels.includes(channel)) return true;
  const name = channel === "custom" ? getCustomName(frame.data) : undefined;
  return name !== undefined && channels.includes(`custom:${name}`);
}

function getCustomName(data: unknown): string | undefined {
  const name: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "name") : undefined;
  return typeof name === "string" ? name : undefined;
}

/** A segment of a prefix without a colon means every task or call of that name. */
function hasPrefix(namespace: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((segment, index) => {
    const found = namespace[index];
    return found === segment || (!segment.includes(":") && found?.split(":", 1)[0] === segment);
  });
}
