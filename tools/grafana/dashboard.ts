// What a dashboard of deploy/grafana/dashboards may hold: the types of Grafana's own npm package, with texts where these have enums.
import type { Dashboard, GraphFieldConfig, Panel, RowPanel, TableFieldOptions } from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TableOptions } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TimeSeriesOptions } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type { TempoQuery } from '@grafana/schema/dist/esm/raw/composable/tempo/dataquery/x/TempoDataQuery_types.gen';

type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;

// A target of Prometheus, as PrometheusDatasource of grafana/grafana reads it (packages/grafana-prometheus/src/types.ts, PromQuery).
interface PromQuery {
  refId: string;
  expr: string;
  legendFormat?: string;
  range?: boolean;
  instant?: boolean;
  exemplar?: boolean;
  interval?: string;
  format?: 'time_series' | 'table' | 'heatmap';
}

type Of<Type extends string, Source extends string, Query, Options, Custom> = Omit<
  Plain<Panel<Record<string, unknown>, Custom>>,
  'type' | 'datasource' | 'targets' | 'options'
> & {
  type: Type;
  options?: Plain<Options>;
  datasource: { type: Source; uid: string };
  targets: Query[];
};

type Panels =
  | Of<'timeseries', 'prometheus', PromQuery, TimeSeriesOptions, GraphFieldConfig>
  | Of<'stat', 'prometheus', PromQuery, Partial<StatOptions>, Record<string, unknown>>
  | Of<'table', 'prometheus', PromQuery, Partial<TableOptions>, Partial<TableFieldOptions>>
  | Of<'table', 'tempo', Plain<TempoQuery>, Partial<TableOptions>, Partial<TableFieldOptions>>
  | (Plain<Omit<RowPanel, 'panels'>> & { panels: [] });

export type Board = Omit<Plain<Dashboard>, 'panels'> & { uid: string; title: string; panels: Panels[] };

// tsc has to refuse each of these, or it looks at nothing.
type Defaults = NonNullable<Extract<Board['panels'][number], { type: 'timeseries' }>['fieldConfig']>['defaults'];
// @ts-expect-error
export const noSuchKey: Defaults = { units: 's' };
// @ts-expect-error
export const noSuchMode: Defaults = { thresholds: { mode: 'absolut', steps: [] } };
// @ts-expect-error
export const noSuchStack: Defaults = { custom: { stacking: { mode: 'stacked' } } };
// @ts-expect-error
export const noSuchVariable: NonNullable<Board['templating']> = { list: [{ name: 'run', type: 'querry' }] };
