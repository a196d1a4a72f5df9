/** Positions at which lines touch a side of a box: as straight as possible, with spacing. */

/** A line that touches the side; `wish` is the position of a straight line, `fixed` a required position. */
export interface PortRequest {
  readonly key: string;
  readonly wish: number;
  readonly fixed: number | undefined;
}

const portSpacing = 16;

/** Returns a position between `from` and `to` for each line, in the order of the requested positions. */
export function spreadPorts(requests: readonly PortRequest[], from: number, to: number): ReadonlyMap<string, number> {
  const ports = new Map<string, number>();
  for (const { key, fixed } of requests) if (fixed !== undefined) ports.set(key, fixed);
  const free = requests
    .filter(({ fixed }) => fixed === undefined)
    .toSorted((first, second) => first.wish - second.wish);
  const gap = Math.min(portSpacing, (to - from) / Math.max(1, free.length - 1));
  const at = free.map(({ wish }) => Math.min(to, Math.max(from, wish)));
  for (let index = 1; index < at.length; index++) at[index] = Math.max(at[index] ?? 0, (at[index - 1] ?? 0) + gap);
  const last = at.length - 1;
  if (last >= 0) at[last] = Math.min(to, at[last] ?? 0);
  for (let index = last - 1; index >= 0; index--) at[index] = Math.min(at[index] ?? 0, (at[index + 1] ?? 0) - gap);
  free.forEach(({ key }, index) => {
    ports.set(key, at[index] ?? from);
  });
  return ports;
}
