"""The report of the referral track: tables and pictures of finished runs."""

from vcl_radial.tracks.retinopathy.report.write import write_referral_report

__all__ = ["write_referral_report"]
